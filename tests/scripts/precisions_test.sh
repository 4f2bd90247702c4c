#!/usr/bin/env bash
# Tests that are compiled once, in unit_common, use nothing that is compiled for one precision.
# Usage: precisions_test.sh BUILD_DIR
set -euo pipefail
mapfile -t objects < <(find "$1/tests/CMakeFiles/unit_common.dir" -name '*_cxx.cxx.o' -o -name '*_test.cpp.o')
((${#objects[@]} > 0)) || { echo "precisions_test: unit_common has no tests" >&2; exit 1; }
for object in "${objects[@]}"; do
  used=$(nm -C "$object" | grep -E 'thimble::f(32|64)::' || true)
  if [[ -n $used ]]; then
    echo "precisions_test: $object computes: take the test off the list of common ones in tests/CMakeLists.txt" >&2
    head -n 3 <<<"$used" >&2
    exit 1
  fi
done
echo "precisions_test: ok (${#objects[@]} objects)"
