#!/usr/bin/env bash
# Installs a build into a folder of its own, then builds tests/consumer against it and runs it: the package is complete
# and nothing in it points back into the source or build tree.
# Usage: consumer_test.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
build=$(realpath "$1")
source=$(realpath "$2")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() {  # STEP COMMAND...: the command's output is shown only when it fails
  "${@:2}" >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "consumer_test: failed: $1" >&2; exit 1; }
}

run "install" cmake --install "$build" --prefix "$work/prefix"
if grep -rnF -e "$source" -e "$build" --include='*.cmake' --include='*.pc' "$work/prefix" >&2; then
  echo "consumer_test: the installed package names the source or build tree (above)" >&2
  exit 1
fi

cp -r "$source/tests/consumer" "$work/consumer"
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
run "configure the consumer" cmake -S "$work/consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/prefix"
run "build the consumer" cmake --build "$work/build"
"$work/build/consumer" || { echo "consumer_test: failed: run the consumer (exit status $?)" >&2; exit 1; }
"$work/prefix/bin/thimble" tasks >/dev/null || { echo "consumer_test: failed: the installed program" >&2; exit 1; }
