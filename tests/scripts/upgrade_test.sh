#!/usr/bin/env bash
# A run of each release, kept in tests/releases, opens: eval gives the losses of its summary, inspect its heads, and training
# goes on from it. Usage: upgrade_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

loss_of() { sed -n '/"test": {/,/}/s/.*"loss": \([0-9.e-]*\).*/\1/p' "$1"; }

count=0
for release in "${configs%/configs}"/tests/releases/*; do
  [[ -f $release/data.json ]] || continue
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

# Runs on own data: pairs, half trained, windows of a stream, and a sweep, all of them moved.
cp -r "${configs%/configs}"/tests/releases/0.3.0_own_data own
cd own
expect 0 '^test +loss 2.5625' eval pairs
expect 0 '"outputs": \["ham", "spam"\]|^prediction' trace pairs "w1 w2"
expect 0 'head 0.0' inspect pairs --sequences 9
grep -q '"vocabulary"' pairs/data.json && ! grep -q '"outputs"' pairs/data.json || fail "no old record" "$(cat pairs/data.json)"
# One output for each token, as it was trained; only the order of a step is new.
expect 0 'begun by version 0.3, which read the rows of a step in another order: rounding and dropout differ' \
  train pairs --resume
! grep -q '"outputs"' pairs/data.json || fail "a resumed run has other outputs" "$(cat pairs/data.json)"
grep -q '"thimble 4"' pairs/data.json && grep -q '"step_order": "dealt"' pairs/data.json ||
  fail "the record of a resumed run" "$(cat pairs/data.json)"
expect 0 '^validation +loss' train pairs --resume train.steps=50
! grep -q 'begun by version' <<<"$output" || fail "said twice" "$output"
expect 0 'data.validation=6: version 0.3 took the first 6 windows, this one takes a random sample of 6' eval stream
expect 0 '^test +loss 1.6744' eval stream --split test
expect 0 'resuming from step 20' train stream --resume train.steps=30
! grep -q 'begun by version' <<<"$output" || fail "windows have the order of before" "$output"
before=$(cat sweep/runs/*/summary.json | cksum)
expect 0 'lr=0.01 +1/1' sweep sweep.yaml --out sweep
[[ $(cat sweep/runs/*/summary.json | cksum) == "$before" ]] || fail "the sweep trained again" "$output"
expect 0 'lr_0.001' compare sweep/runs/001-lr_0.01-seed_1 sweep/runs/002-lr_0.001-seed_1 --sequences 9
expect 2 'exists and is not an empty directory' train pairs.yaml --out sweep/runs/001-lr_0.01-seed_1
cd ..

# A run of a version that counted as another format says which version wrote it.
rm -rf "$version" && cp -r "${configs%/configs}/tests/releases/$version" "$version"
sed -i 's/"format": "thimble [0-9]*"/"format": "thimble 99"/' "$version/data.json"
expect 2 "version $version" eval "$version"
