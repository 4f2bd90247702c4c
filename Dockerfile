# thimble for macOS, Windows and other systems without Debian's packages: see "Platforms and license" in README.md.
FROM debian:12
COPY . /thimble
WORKDIR /thimble
RUN scripts/build.sh thimble_program && cmake --install build/release && rm -rf build /var/lib/apt/lists/*
WORKDIR /work
ENTRYPOINT ["thimble"]
