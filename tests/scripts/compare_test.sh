#!/usr/bin/env bash
# Comparisons of runs and of sweeps: the text, the JSON, the page, what is refused.
# Usage: compare_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

short=(train.steps=60 train.batch=16 train.evaluate_every=20 train.schedule.warmup=2 data.validation=50 data.test=50)
train() { "$thimble" train "$@" --quiet; }
train "$configs/reverse.yaml" "${short[@]}" --out runs/one
train "$configs/reverse.yaml" "${short[@]}" model.heads=4 train.seed=7 --out runs/four
train "$configs/sort.yaml" "${short[@]}" --out runs/sort
subcommand=(compare)

# Results with the best marked, a curve for each run, only the keys that differ, matched heads.
expect 0 '^run +val\. loss +test loss +tokens % +sequences % +steps +s +train loss$' runs/one runs/four --html page.html --json all.json
for line in '^(one|four)( +[0-9.]+\*?){7}$' '^(one|four) .*[0-9]\*' '^validation loss: heights from 0 to ' '^model\.heads +[14] +4$' \
  '^train\.seed +42 +7$' '^weights +[0-9a-f]{16} +[0-9a-f]{16}$' '^0\.0 +0\.[0-3] +0\.[0-9]{3} +0\.[0-9]{3} +0\.' \
  '^no match +0\.[0-3]$' '^mean +0\.'; do
  grep -qE "$line" <<<"$output" || fail "no $line" "$output"
done
! grep -qE '^(model\.layers|thimble version) ' <<<"$output" || fail "a key with one value" "$output"
! grep -qE '.{81}| $' <<<"$output" || fail "wider than 80 columns, or spaces at the end of a line" "$output"
[[ $(grep -c 'no match' <<<"$output") == 3 ]] || fail "not three heads without a match" "$output"
grep -q '"weights_hash"' runs/one/summary.json && grep -qE '"version": "[0-9.]+"' runs/one/summary.json || fail "no version in a summary"
expect 0 '^thimble version +[0-9.]+ +[0-9.]+$' runs/one runs/four --all
grep -qE '^model\.layers +1 +1$' <<<"$output" || fail "--all lacks a key" "$output"

# The same bytes again; JSON alone on standard output; nothing with --quiet.
expect 0 . runs/one runs/four --html again.html --json again.json
cmp page.html again.html
cmp all.json again.json
expect 0 '^\{$' runs/one runs/four --json -
[[ $output == "{"*"}" ]] || fail "standard output is not JSON alone" "$output"
expect 0 '^$' runs/one runs/four --quiet

# A run is like itself; other sequences are not.
expect 0 '^mean +1\.000 ' runs/one runs/one
! grep -qE '[0-9]\*' <<<"$output" || fail "a best of equal runs" "$output"
grep -qE '^0\.0 +0\.0 +1\.000 +0\.[0-9]+ +0\.[0-9]+$' <<<"$output" || fail "a head unlike itself" "$output"

# Other tasks: results without a best, configs, and why heads are not compared.
expect 0 'Heads of one and sort are not compared: the tasks differ, reverse and sort;' runs/one runs/sort
! grep -qE '[0-9]\*' <<<"$output" || fail "a best of different tasks" "$output"
grep -qE '^task\.name +reverse +sort$' <<<"$output" || fail "no task.name" "$output"

# A sweep: medians over seeds; sweep --html and compare write the same page.
printf 'config: %s\ngrid: {model.heads: [1, 2]}\nseeds: [7, 8, 9]\n' "$configs/reverse.yaml" >s.yaml
"$thimble" sweep s.yaml "${short[@]}" --out s --html sweep.html --quiet
expect 0 '^heads=2( +[0-9.]+\*?){7}$' s --html compared.html
[[ $(grep -cE '^  (min|max)( +[0-9.]+){7}$' <<<"$output") == 4 ]] || fail "no minima and maxima" "$output"
cmp sweep.html compared.html
mv s moved
expect 0 '^heads=2( +[0-9.]+\*?){7}$' moved
expect 0 '^runs/one +[0-9]' runs/one moved
grep -qE '^moved/heads=2 ' <<<"$output" || fail "no name of the sweep" "$output"

# A sweep of one run that fails still has a page.
cat >fails.yaml <<END
config: $configs/reverse.yaml
list:
  - {train.optimizer.name: sgd, train.optimizer.lr: 100, train.optimizer.momentum: 0.99, train.clip_norm: 0,
     model.norm: pre, model.layers: 4, model.positions: none}
END
! "$thimble" sweep fails.yaml "${short[@]}" --out fails --html fails.html --quiet 2>log || fail "the run did not fail"
[[ -s fails.html ]] || fail "no page of a failed sweep" "$(cat log)"
expect 0 '1 of 1 runs without a result' fails

# Files that are damaged.
printf '{"settings": 5}' >moved/sweep.json
refuse '^thimble: moved/sweep\.json: is not what this version writes; ' moved
cp -r runs/one broken
printf '{"steps":' >broken/summary.json
expect 0 '^thimble: broken/summary\.json: not valid JSON at byte [0-9]+; its numbers are left out; measure them with ' runs/one broken
echo "compare_test: ok"
