#!/usr/bin/env bash
# Makes the files of a release in dist/, each with its SHA-256 in dist/SHA256SUMS. The bytes of tarball, wheel and source
# archive depend on the commit and the compiler alone: `scripts/test_release.sh --twice` builds them in another folder, too.
# Usage: scripts/release.sh [--aarch64] [tarball|wheel|deb|lab|source...]   (default: all of them)
#   --aarch64: tarball and wheel for 64-bit Arm, too, which needs g++-aarch64-linux-gnu, qemu-user and, in the folder $SYSROOT,
#   libyaml-cpp-dev for arm64
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

address=""  # where people download them; README.md shows it once it is known

machines=("$(uname -m)")
if [[ ${1:-} == --aarch64 ]]; then
  machines+=(aarch64)
  shift
fi
if (($# == 0)); then set -- tarball wheel deb lab source; fi
for file in "$@"; do
  [[ " tarball wheel deb lab source " == *" $file "* ]] ||
    { echo "release: $file: choose tarball, wheel, deb, lab or source" >&2; exit 2; }
done
version=$(sed -n 's/^project(thimble VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
scripts/setup.sh dpkg-dev file python3
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mkdir -p dist

# The static program of a machine with its configs, manual, completions and pages, in the folder `stage` of its build.
stage() {
  preset=static strip=strip
  [[ $1 == "$(uname -m)" ]] || preset=static-$1 strip=$1-linux-gnu-strip
  stage=build/$preset/stage
  cmake --fresh --preset "$preset" >/dev/null # what a folder remembers of former builds changes the bytes
  CCACHE_DISABLE=1 cmake --build --preset "$preset"
  cmake -E rm -rf "$stage"
  cmake --install "build/$preset" --component program --prefix "$stage" >/dev/null
  "$strip" "$stage/bin/thimble"
  mkdir -p "$stage/share/doc/thimble/docs"
  cp README.md LICENSE CHANGELOG.md "$stage/share/doc/thimble"
  cp docs/* "$stage/share/doc/thimble/docs"
}

tarball() {
  local name=thimble-$version-linux-$1
  cp build/lab/thimble-lab.html "$stage/share/doc/thimble"
  tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw --mtime="@$SOURCE_DATE_EPOCH" \
    --transform "s,^\.,$name," --directory "$stage" . | gzip --no-name -9 >"dist/$name.tar.gz"
}

if [[ " $* " == *" tarball "* || " $* " == *" lab "* ]]; then
  rm -f build/lab/{build.ninja,CMakeCache.txt}
  scripts/lab.sh
fi
if [[ " $* " == *" tarball "* || " $* " == *" wheel "* ]]; then
  for machine in "${machines[@]}"; do
    stage "$machine"
    [[ " $* " != *" wheel "* ]] || scripts/wheel.py "$stage" "$machine" dist >/dev/null
    [[ " $* " != *" tarball "* ]] || tarball "$machine"
  done
fi
for file in "$@"; do
  case $file in
    deb)
      scripts/build.sh thimble_program
      cpack --config build/release/CPackConfig.cmake -G DEB -B build/release/package >/dev/null  # compiles no tests
      cp build/release/package/thimble_"$version"_*.deb dist ;;
    lab) cp build/lab/thimble-lab.html dist ;;
    source)
      git archive --format=tar --prefix="thimble-$version/" HEAD | gzip --no-name -9 >"dist/thimble-$version.tar.gz" ;;
  esac
done
(cd dist && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf "%P\n" | sort | xargs -d "\n" sha256sum -- >SHA256SUMS)
(cd dist && while read -r digits file; do printf '%9d  %s  %s\n' "$(stat -c %s "$file")" "${digits:0:16}" "$file"; done <SHA256SUMS)
[[ -z $address ]] || echo "release: put them at $address"
