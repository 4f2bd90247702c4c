#!/usr/bin/env bash
# Runs a test in Debian's Python, or says which of the modules it needs is missing and exits with 77: skipped.
# Usage: python_test.sh "MODULE..." SCRIPT ARGUMENT...
set -euo pipefail
python=/usr/bin/python3
[[ -x $python ]] || { echo "skipped: there is no $python"; exit 77; }
for module in $1; do
  "$python" -c "import $module" 2>/dev/null || { echo "skipped: $python has no module $module"; exit 77; }
done
exec "$python" -B "${@:2}"
