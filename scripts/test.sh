#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every fast test; names the slowest ten before the summary.
# Usage: scripts/test.sh [ctest arguments], for example: scripts/test.sh -R attention
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh

echo "test: running the fast tests"
ctest --test-dir build/release --label-regex '^fast$' --no-tests=error --output-on-failure -j2 "$@" </dev/null | awk '
  /^ *[0-9]+\/[0-9]+ Test +#.* sec *$/ { seconds[$4] = $(NF - 1) }
  /^[0-9]+% tests passed/ { in_summary = 1 }
  in_summary { summary = summary $0 "\n"; next }
  { print; fflush() }
  END {
    print "\nThe slowest:"
    fflush()
    for (test in seconds) printf "%8.2f s  %s\n", seconds[test], test | "sort -nr | head -n 10"
    close("sort -nr | head -n 10")
    printf "\n%s", summary
  }'
