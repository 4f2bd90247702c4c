#!/usr/bin/env bash
# Reads the sources with clang-tidy 14 (.clang-tidy says what it looks for), a dozen as one, since most of the time goes to
# headers. Usage: scripts/check_tidy.sh [part of a path...]   (default: every source; with paths, file by file)
#   alternate, in place of a path: every fourth unit, which ones depends on the commit
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tidy=$(command -v clang-tidy-14) || { echo "tidy: clang-tidy-14 is needed; on Debian: scripts/setup.sh clang-tidy-14" >&2; exit 1; }

every=1 first=0 merge=ON
if [[ ${1:-} == alternate ]]; then
  every=4 first=$((16#$(git rev-parse --short=7 HEAD) % 4))
  shift
elif (($# > 0)); then
  merge=OFF
fi
cmake -S . -B build/tidy -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_UNITY_BUILD=$merge -DTHIMBLE_BUILD_TESTS=OFF \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_CXX_COMPILER_LAUNCHER= >/dev/null
# Both precisions have the same sources; one is enough.
mapfile -t units < <(grep -E '^  "(command|file)"' build/tidy/compile_commands.json | paste - - | grep -v '_f64\.dir' |
  sed 's/.*"file": "\(.*\)".*/\1/' | grep -E "$(IFS='|' && echo "(${*:-.})")" | awk "NR % $every == $first % $every")
((${#units[@]} > 0)) || { echo "tidy: no source matches $*" >&2; exit 1; }
printf '%s\0' "${units[@]}" | xargs -0 -P "$(nproc)" -n 1 "$tidy" -p build/tidy --quiet 2>/dev/null ||
  { echo "tidy: clang-tidy has objections (above)" >&2; exit 1; }
echo "tidy: ok (${#units[@]} units)"
