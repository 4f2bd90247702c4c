#!/usr/bin/env bash
# Compiles every source by itself, without code generation and without the precompiled header: each must include what it
# uses, and warnings are errors. Usage: scripts/check_files.sh [part of a path...]   (default: every source)
#   alternate, in place of a path: every eighth source, which ones depends on the commit, and all that no test builds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cmake -S . -B build/files -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_UNITY_BUILD=OFF -DTHIMBLE_WERROR=ON \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DCMAKE_CXX_COMPILER_LAUNCHER= -DTHIMBLE_BUILD_TESTS=ON >/dev/null
every=1 first=0
if [[ ${1:-} == alternate ]]; then
  every=8 first=$((16#$(git rev-parse --short=7 HEAD) % 8))
  shift
fi
# Both precisions have the same sources and tests; one is enough.
chosen="($(IFS='|' && echo "${*:-.}"))"
mapfile -t all < <(sed -n 's/^  "command": "\(.*\)",$/\1/p' build/files/compile_commands.json | sed 's/\\"/"/g; s/\\\\/\\/g' |
  grep -v '_f64.dir')
mapfile -t commands < <(printf '%s\n' "${all[@]}" | grep -E "$chosen" |
  awk "NR % $every == $first % $every || /tests\/bench\/[^ ]*\$/")
# The lab's sources, of which emscripten alone makes objects: with the flags of the other addon.
flags=$(printf '%s\n' "${all[@]}" | grep 'src/addons/cluster/claim.cpp$')
for source in $(grep -L '<emscripten' src/addons/lab/*.cpp | grep -E "$chosen"); do
  commands+=("${flags%src/addons/*}$source -Wno-deprecated-declarations")
done
((${#commands[@]} > 0)) || { echo "files: no source matches $*" >&2; exit 1; }
printf '%s\0' "${commands[@]/%/ -fsyntax-only}" | (cd build/files && xargs -0 -P "$(nproc)" -I{} bash -c '{}') ||
  { echo "files: not every file compiles by itself (errors above)" >&2; exit 1; }
echo "files: ok (${#commands[@]} sources)"
