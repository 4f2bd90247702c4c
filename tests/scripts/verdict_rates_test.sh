#!/usr/bin/env bash
# The rates of wrong verdicts on the page docs/wrong.md are those that its program measures, on runs of the docs.
# Usage: verdict_rates_test.sh PROGRAM SOURCE_DIR RUNS
set -euo pipefail
page=$(realpath "$2")/docs/wrong.md
grep -qwE 'avx2|asimd' /proc/cpuinfo || { echo "verdict_rates_test: this CPU trains other weights"; exit 77; }
program=$(realpath "$1")
cd "$3"
# shellcheck disable=SC2046  # several names
"$program" $(sed -n 's|runs/||g; s|^build/release/tests/verdict_rates ||p' "$page") | sed 's/ *$//' |
  diff <(awk '/^```/ { inside = !inside; plain = inside && $0 == "```"; next } plain' "$page") - ||
  { echo "verdict_rates_test: $page does not have these numbers" >&2; exit 1; }
