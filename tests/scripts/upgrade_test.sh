#!/usr/bin/env bash
# A run of each release, kept in tests/releases, opens: eval gives the losses of its summary, inspect its heads, and training
# goes on from it. Usage: upgrade_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

loss_of() { sed -n '/"test": {/,/}/s/.*"loss": \([0-9.e-]*\).*/\1/p' "$1"; }

count=0
for release in "${configs%/configs}"/tests/releases/*; do
  version=$(basename "$release")
  cp -r "$release" "$version"
  expect 0 . eval "$version" --json eval.json
  kept=$(loss_of "$version/summary.json") now=$(loss_of eval.json)
  awk -v a="$kept" -v b="$now" 'BEGIN { exit !(a > 0 && (a - b < 1e-6 * a) && (b - a < 1e-6 * a)) }' ||
    fail "$version: its test loss was $kept, and is $now"
  expect 0 'head 0.0' inspect "$version"
  steps=$(sed -n 's/^ *"steps": \([0-9]*\),/\1/p' "$version/summary.json")
  expect 0 . train "$version" --resume train.steps=$((steps + 10))
  count=$((count + 1))
done
((count > 0)) || fail "tests/releases has no run"

# A run of a version that counted as another format says which version wrote it.
version=$(basename "$release")
rm -rf "$version" && cp -r "$release" "$version"
sed -i 's/"format": "thimble [0-9]*"/"format": "thimble 99"/' "$version/data.json"
expect 2 "version $version" eval "$version"
