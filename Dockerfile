# thimble for macOS, Windows and other systems without Debian's packages: see "Platforms and license" in README.md.
#
# The tag moves with Debian's updates. To pin what is built, pass a digest that `docker pull debian:12` prints:
# docker build --build-arg BASE=debian@sha256:... --tag thimble .
ARG BASE=debian:12
FROM ${BASE}
COPY . /thimble
WORKDIR /thimble
RUN scripts/build.sh thimble_program && cmake --install build/release && rm -rf build /var/lib/apt/lists/*
# Docker Desktop makes a mounted folder writable for every user. On Linux it belongs to its owner there: 1000 is the
# first user of most systems; others add --user "$(id -u):$(id -g)" to docker run.
RUN useradd --uid 1000 --create-home thimble && install --directory --owner=thimble --group=thimble /work
USER thimble
WORKDIR /work
ENTRYPOINT ["thimble"]
