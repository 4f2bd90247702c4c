#!/usr/bin/env bash
# The floors that weights pass through, engine and train, call no function of the C library whose last bits depend on the CPU:
# engine/core/portable_math.h has them. Square roots, rounding and scaling by powers of two are exact everywhere.
# Usage: libm_test.sh BUILD_DIR
set -euo pipefail
functions='^(a?(sin|cos|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p)?|pow|cbrt|hypot|erfc?|[lt]gamma)[fl]?$'
mapfile -t objects < <(sed -nE "s/.* -o (CMakeFiles\/thimble_(engine|train)_[a-z0-9_]+\.dir\/(Unity|src)\/[^ ]*) .*/\1/p" \
  "$1/compile_commands.json" | sort -u)
((${#objects[@]} > 50)) || { echo "libm_test: only ${#objects[@]} objects in $1" >&2; exit 1; }
cd "$1"
status=0
for object in "${objects[@]}"; do
  used=$(nm -u "$object" | awk -v functions="$functions" '$2 ~ functions { print $2 }' | xargs)
  [[ -z $used ]] || { echo "libm_test: $object calls $used; use engine/core/portable_math.h" >&2; status=1; }
done
((status == 0)) && echo "libm_test: ok (${#objects[@]} objects)"
exit $status
