#!/usr/bin/env bash
# Outputs replace no input and no file of a run, under whatever name, and keep the mode and the links of what they
# replace. Files of a run that are no regular files are refused at once.
# Usage: outputs_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

short=(train.steps=20 train.schedule.warmup=5 train.evaluate_every=10 data.validation=100 data.test=100)
state() { find . -type f -exec md5sum {} + | sort; }

# keep PATTERN ARGUMENT...: refuse, and no file changes.
keep() {
  local before
  before=$(state)
  refuse "$@"
  [[ $(state) == "$before" ]] || fail "thimble ${*:2}: it changed a file" "$(state | diff - <(echo "$before"))"
}

"$thimble" train "$configs/reverse.yaml" "${short[@]}" --out run --quiet
cp "$configs/reverse.yaml" config.yaml
cp "$configs/data/plural.tsv" data.tsv
cp run/checkpoints/final.safetensors weights
printf 'config: config.yaml\nseeds: [1, 2]\n' >sweep.yaml
ln config.yaml hard
ln -s data.tsv soft

input='is an input of this command, which the result would replace; choose another file'
keep "^thimble: --json config.yaml: $input" train config.yaml "${short[@]}" --json config.yaml
keep "^thimble: --json hard: $input" train config.yaml "${short[@]}" --json hard
for file in data.tsv soft; do
  keep "^thimble: --json $file: $input" train "$configs/own_data.yaml" task.file=data.tsv --json $file
done
keep "^thimble: --html weights: $input" inspect --weights weights --html weights
keep "^thimble: --html sweep.yaml: $input" sweep sweep.yaml --out sweep --html sweep.yaml
keep "^thimble: --html config.yaml: $input" sweep sweep.yaml --out sweep --html config.yaml
printf 'base: config.yaml\n' >derived.yaml
keep "^thimble: --json config.yaml: $input" config show derived.yaml --json config.yaml
keep "^thimble: --json ./p: is the file of --html, too" inspect run --html p --json ./p

here=$(pwd -P)
of_run="is a file of the run $here/run; choose another file"
ln -s run/metrics.jsonl link
ln -s run alias
for file in run/config.yaml run/metrics.jsonl run/summary.json run/.lock run/checkpoints/final.safetensors \
  run/checkpoints/step-99.safetensors run/checkpoints/best.safetensors.damaged-2 run/config.yaml.1-0.tmp \
  run/checkpoints/final.safetensors.1-0.tmp link alias/data.json run/checkpoints/../data.json; do
  for option in --json --html; do
    keep "^thimble: $option $file: $of_run" inspect run $option $file
  done
  keep "^thimble: --json $file: $of_run" config show config.yaml --json $file  # a run that the command does not name
done
# A result replaces a name, so that a file keeps what it has under its other names.
ln -f run/config.yaml other_name
before=$(md5sum <run/config.yaml)
expect 0 '' train config.yaml "${short[@]}" --resume --out run --json other_name
[[ $(md5sum <run/config.yaml) == "$before" ]] && grep -q weights_hash other_name || fail "a file of a run has changed"
mkdir empty
keep "^thimble: --json empty/config.yaml: is a file of the run $here/empty" \
  train config.yaml "${short[@]}" --out empty --json empty/config.yaml
keep "^thimble: --json ./none: is the directory of --out, too" train config.yaml "${short[@]}" --out none --json ./none
"$thimble" sweep sweep.yaml "${short[@]}" --out sweep --quiet
for file in sweep/sweep.json sweep/slurm.sh sweep/runs/x.json; do
  keep "^thimble: --json $file: is a file of the sweep $here/sweep; choose another file" compare sweep --json $file
  keep "^thimble: --html $file: is a file of the sweep $here/sweep" sweep sweep.yaml --out sweep --html $file
done

# A name alone is no reason: what stands there decides, and reading that makes it no input.
mkdir -p project/checkpoints project/runs
cp config.yaml data.tsv project
for file in sweep.json data.json summary.json metrics.jsonl checkpoints/final.safetensors runs/x sweep/summary.json \
  sweep/config.yaml run/sweep.json run/checkpoints/new.json; do
  [[ -d ${file%/*} ]] || file=project/$file
  for try in 1 2; do expect 0 '' eval run --json $file; done
done
for text in '{"format": "thimble 5"}' '{"format": "thimble 3"' '"thimble 3"' '{"format": ["thimble 3"]}'; do
  echo "$text" >project/data.json
  expect 0 '' eval run --json project/summary.json
done
printf '{"a": 1,\r\n"format"\n :\t"thimble 3"}' >project/data.json
keep "^thimble: --json project/summary.json: is a file of the run" eval run --json project/summary.json
expect 0 '' sweep sweep.yaml "${short[@]}" --out sweep --json sweep/summary.json
# Other names are free, also in a run.
expect 0 '' eval run --json run/eval.json
expect 0 '' eval run --json run/eval.json

# What is replaced keeps its mode and its links; what is read-only stays.
chmod 600 run/eval.json
ln -s run/eval.json result.json
expect 0 '' eval run --json result.json
[[ $(stat -c %a run/eval.json) == 600 && -L result.json ]] || fail "another mode, or no link" "$(ls -l)"
if ((EUID != 0)); then
  chmod 444 run/eval.json
  keep 'run/eval.json: cannot be written: Permission denied' eval run --json result.json
fi

# Pipes and links in place of files of a run.
"$thimble" train "$configs/reverse.yaml" "${short[@]}" --stop-after 12 --out part --quiet 2>/dev/null
touch mine
for file in metrics.jsonl config.yaml data.json checkpoints/step-12.safetensors .lock; do
  for kind in pipe link; do
    rm -rf broken
    cp -r part broken
    rm -f broken/$file
    if [[ $kind == pipe ]]; then mkfifo broken/$file; else ln -s "$work/mine" broken/$file; fi
    status=0
    timeout 60 "$thimble" train broken --resume --quiet >out 2>&1 || status=$?
    # An empty file is a damaged checkpoint; the best one takes its place.
    [[ $kind == link && $file == checkpoints/* ]] && wanted=0 || wanted=2
    ((status == wanted)) || fail "$kind at $file: exit status $status, not $wanted" "$(cat out)"
    [[ ! -s mine ]] || fail "$kind at $file: written through" "$(cat mine)"
  done
done
# The log of a sweep's run.
expect 0 '' sweep sweep.yaml "${short[@]}" --out new --max-runs 1 || true
log=$(basename sweep/runs/*seed*2.log)
for kind in pipe link; do
  rm -f "new/runs/$log"
  if [[ $kind == pipe ]]; then mkfifo "new/runs/$log"; else ln -s "$work/mine" "new/runs/$log"; fi
  expect 2 "new/runs/$log: cannot be written: " sweep sweep.yaml "${short[@]}" --out new
  [[ ! -s mine ]] || fail "$kind at a log: written through" "$(cat mine)"
done
rm "new/runs/$log"
expect 0 '' sweep sweep.yaml "${short[@]}" --out new
