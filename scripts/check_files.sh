#!/usr/bin/env bash
# Compiles every source by itself, without code generation and without the precompiled header: each must include what it
# uses, and warnings are errors. Usage: scripts/check_files.sh [--tidy] [part of a path...]   (default: every source)
#   alternate, in place of a path: every eighth source, which ones depends on the commit
#   --tidy: clang-tidy 14 also reads those of src, or with alternate every other one of them; it takes 8 s a file
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cmake -S . -B build/files -G Ninja -DCMAKE_BUILD_TYPE=Debug -DTHIMBLE_MERGE=1 -DTHIMBLE_WERROR=ON \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_CXX_COMPILER_LAUNCHER= -DTHIMBLE_BUILD_TESTS=ON >/dev/null
every=1 first=0 every_tidy=1 tidy=
if [[ ${1:-} == --tidy ]]; then
  tidy=$(command -v clang-tidy-14) || { echo "files: clang-tidy-14 is needed; on Debian: scripts/setup.sh clang-tidy-14" >&2; exit 1; }
  shift
fi
if [[ ${1:-} == alternate ]]; then
  every=8 first=$((16#$(git rev-parse --short=7 HEAD) % 8)) every_tidy=2
  shift
fi
# Both precisions have the same sources and tests; one is enough.
mapfile -t commands < <(sed -n 's/^  "command": "\(.*\)",$/\1/p' build/files/compile_commands.json | sed 's/\\"/"/g; s/\\\\/\\/g' |
  grep -v '_f64.dir' | grep -E "$(IFS='|' && echo "(${*:-.})")" | awk "NR % $every == $first % $every")
((${#commands[@]} > 0)) || { echo "files: no source matches $*" >&2; exit 1; }
printf '%s\0' "${commands[@]/%/ -fsyntax-only}" | (cd build/files && xargs -0 -P "$(nproc)" -I{} bash -c '{}') ||
  { echo "files: not every file compiles by itself (errors above)" >&2; exit 1; }
mapfile -t sources < <(printf '%s\n' "${commands[@]##* }" | grep "^$PWD/src/" | awk "NR % $every_tidy == 0")
if [[ -n $tidy ]] && ((${#sources[@]} > 0)); then
  printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -n 1 "$tidy" -p build/files --quiet 2>/dev/null ||
    { echo "files: clang-tidy has objections (above)" >&2; exit 1; }
fi
echo "files: ok (${#commands[@]} sources${tidy:+, ${#sources[@]} of them tidy})"
