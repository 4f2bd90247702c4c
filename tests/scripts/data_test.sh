#!/usr/bin/env bash
# Data from files: a run does not need its files, and data that does not match a model is named.
# Usage: data_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

# pairs WORD: 300 lines whose answer is the parity of their number.
pairs() { for ((i = 0; i < 300; ++i)); do printf '%s%d is\t%s\n' "$1" $((i % 30)) $((i % 30 % 2)); done; }
pairs w >words.tsv
model=(model.output.per=sequence model.d_model=16 train.steps=60 train.batch=32 train.optimizer.lr=0.01)
echo '{}' >empty.yaml

# Classification with the default output: one problem, with the key to set.
refuse '^.*words.tsv:1: 1 answer for 2 tokens: .*; set model.output.per=sequence \(and 299 more lines like it: 2, 3, 4, \.\.\.\)$' \
  train empty.yaml task.name=file task.file=words.tsv
# An encoder-decoder has only one output. Oddities of the file are reported.
expect 0 '^thimble: .*words.tsv:31: same input and target as in .*words.tsv:1 \(and 269 more\)' \
  train empty.yaml task.name=file task.file=words.tsv model.kind=encoder_decoder train.steps=2 --out pair
grep -q 'per: next' pair/config.yaml || fail "an encoder-decoder without its output" "$(cat pair/config.yaml)"
{ cat words.tsv && printf 'w1 is\t0\n'; } >odd.tsv
expect 0 'odd.tsv:301:' tasks file task.file=odd.tsv
[[ $(tr '\n' ' ' <<<"$output") == *'odd.tsv:301: same input with another target as in '* ]] ||
  fail "no contradiction" "$output"

expect 0 '^$' train empty.yaml task.name=file task.file=words.tsv model.kind=encoder_decoder train.steps=2 --quiet

# A run and its vocabulary.
expect 0 '^reference +tokens +[0-9.]+ %   chance$' train empty.yaml task.name=file task.file=words.tsv "${model[@]}" --out run
! grep -E '.{81}' <<<"$output" | grep -v '^thimble: ' || fail "a line of more than 80 columns" "$output"
grep -q '"w29"' run/data.json && grep -q '"hash"' run/data.json && grep -q '"../words.tsv"' run/data.json ||
  fail "no vocabulary, hash or relative path" "$(cat run/data.json)"
expect 0 '^prediction' trace run "w4 is" --json before.json
logits() { grep -A30 '"logits"' "$1"; }
expect 0 '' eval run --split test --json eval.json

# Other data: new tokens are named; tokens of the model keep their ids.
printf 'w1 is\t1\nw2 was\t0\n' >new.tsv
refuse '^.*new.tsv:2: token was is not in the vocabulary that the model was trained with' \
  eval run task.test_file=new.tsv --split test
{ printf 'AAA is\t0\n' && pairs w; } >words.tsv
expect 2 '^thimble: .*words.tsv has changed since training: [0-9]+ bytes, hash [0-9a-f]{16} then, [0-9]+ bytes' eval run
grep -q 'words.tsv:1: token AAA is not in the vocabulary' <<<"$output" || fail "no word about AAA" "$output"
expect 0 'has changed since training' trace run "w4 is" --json after.json
grep -q '^the splits are those of the file as it is now; ' <<<"$output" || fail "other splits" "$output"
[[ $(logits before.json) == "$(logits after.json)" ]] || fail "a change of the file changed what the model reads"
expect 2 'the training data has changed since the run began' train run --resume train.steps=70

# A project that moved: every command finds the data where it was from the run.
mkdir project && cp words.tsv empty.yaml project
pairs u | sed 's/$/ a/' >project/pairs.tsv
cd project
mine=(task.name=file task.file=words.tsv "${model[@]}")
"$thimble" train empty.yaml "${mine[@]}" --out runs/whole --quiet
"$thimble" train empty.yaml "${mine[@]}" --out runs/part --stop-after 20 --quiet 2>said
"$thimble" train empty.yaml task.name=file task.file=pairs.tsv model.kind=encoder_decoder train.steps=2 --out runs/pair --quiet
printf 'config: run.yaml\nseeds: [1, 2]\n' >s.yaml
printf 'task: {name: file, file: words.tsv}\nmodel: {output: {per: sequence}, d_model: 16}\n' >run.yaml
short=(train.steps=20 train.batch=32)
"$thimble" train run.yaml "${short[@]}" --stop-after 10 --quiet 2>/dev/null
"$thimble" sweep s.yaml "${short[@]}" --max-runs 1 --out sweep --quiet || fail "no sweep of one run"
cd .. && mv project elsewhere && cd elsewhere
loss() { grep -A2 '"test"' "$1"; }
weights() { grep -o '"weights_hash": "[0-9a-f]*"' "$1/summary.json"; }
cp -r runs/whole runs/other
expect 0 '^test +loss' eval runs/whole --json eval.json
[[ $(loss eval.json) == "$(loss runs/whole/summary.json)" ]] || fail "another loss after the move" "$(cat eval.json)"
resume=$(sed -n 's/^  thimble //p' said)
[[ $resume == 'train runs/part --resume' ]] || fail "no command to resume" "$(cat said)"
# shellcheck disable=SC2086
expect 0 "^task.file: .*/project/words.tsv in the checkpoint, $work/elsewhere/words.tsv in this config" $resume
[[ $(weights runs/part) == "$(weights runs/whole)" ]] || fail "a move changed the weights"
grep -q "$work/elsewhere/words.tsv" runs/part/config.yaml || fail "the old path in the config" "$(cat runs/part/config.yaml)"
expect 0 '^prediction' trace runs/whole "w4 is"
expect 0 '^0\.0 ' inspect runs/whole --sequences 9
expect 0 '^0\.[0-9]+  ' generate runs/pair --input "u4 is"
expect 0 'train|Results' compare runs/whole runs/other --sequences 9
expect 0 '^test +loss' eval --weights runs/whole/checkpoints/final.safetensors --split test
expect 0 '^run +again$' train runs/whole/config.yaml --out again
expect 0 'words.tsv' config show runs/whole/config.yaml
printf 'config: runs/whole/config.yaml\nseeds: [1]\n' >of_run.yaml
expect 0 '1/1' sweep of_run.yaml "${short[@]}" --out sweep_of_run
expect 0 '2/2' sweep s.yaml "${short[@]}" --out sweep
expect 0 '^resuming from step 10$' train run.yaml "${short[@]}" --resume
# It is the same data, or it is not used.
echo 'w1 was	0' >>words.tsv
expect 2 'project/words.tsv: the data file of the run is gone' eval runs/other
expect 2 'project/words.tsv: cannot be read' train runs/other --resume train.steps=70
mv words.tsv away.tsv
expect 2 '^thimble: .*/project/words.tsv: cannot be read' train runs/other --resume train.steps=70
echo '[' >runs/other/data.json
expect 2 'words.tsv: cannot be read|data.json: not valid JSON' train runs/other --resume train.steps=70
cd ..

# No data at all.
rm words.tsv
expect 0 '^prediction' trace run "w4 is"
grep -q '^the splits are those of the files that can be read; ' <<<"$output" || fail "other splits" "$output"
expect 2 'words.tsv: the data file of the run is gone' eval run --split test
grep -q 'so the test split is empty; restore the file, or set another with task.file or task.test_file' \
  <<<"$output" || fail "no remedy" "$output"
expect 0 '^0\.[0-9]+  ' generate pair --input "w4 is"
mv run/checkpoints/final.safetensors lone.safetensors
rm -r run
expect 0 '^prediction' trace --weights lone.safetensors "w4 is" --json lone.json
[[ $(logits before.json) == "$(logits lone.json)" ]] || fail "other logits from the file alone"
printf 'w1 is\t1\nw2 is\t0\n' >new.tsv
expect 0 '^test +loss' eval --weights lone.safetensors task.test_file=new.tsv --split test

# Tasks that do not match the weights.
expect 0 '^reference +loss 0.000000   tokens  10.00 %   lowest possible loss, and chance$' \
  train "$configs/reverse.yaml" train.steps=5 train.schedule.warmup=0 task.length=8 model.positions=learned data.test=100 --out learned
sentence=$(tr '\n' ' ' <<<"$output" | grep -oE 'no better than chance: test tokens .* %\)') ||
  fail "five steps are better than chance" "$output"
sed -E 's/.*tokens ([0-9.]+) % \(95 % CI ([0-9.]+)–([0-9.]+) %\)/\1 \2 \3/' <<<"$sentence" | awk '{ exit !($2 < $1 && $1 < $3) }' || fail "the accuracy is outside of its interval" "$sentence"
grep -q '"no_better_than_chance": true' learned/summary.json || fail "not in the summary" "$(cat learned/summary.json)"
refuse 'task.length=12: .* 12 .* 8; .*model.max_length=12' \
  eval learned task.length=12
refuse 'task.symbols=12: .*vocabulary: 10 tokens, not 12' eval learned task.symbols=12
expect 0 '^test +loss' eval learned task.length=6
grep -q 'no better than chance' <<<"$output" || fail "eval does not say that it is no better than chance" "$output"
echo "data: runs outlive their files"
