#!/usr/bin/env bash
# What a run directory promises, from the command line: legitimate use that nothing refuses, and remedies that help.
# tests/train/runs has the rest. Usage: runs_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

short=(train.steps=8 train.batch=8 train.schedule.warmup=0 train.evaluate_every=2 train.checkpoint_every=2 data.train=100
  data.validation=20 data.test=20 --threads 1)
t() { "$thimble" train "$@" --quiet; }
t "$configs/reverse.yaml" "${short[@]}" --stop-after 6 --out half 2>log
cp -r half full
t full --resume
copy() { rm -rf r && cp -r "$1" r; }
# A run that was killed before it had a config or a checkpoint begins again with its config.
# Killed after its config was written: the same command begins again; a config of somebody else stays.
rm -rf r && mkdir -p r/checkpoints && cp full/config.yaml r
refuse '^thimble: r: exists and is not an empty directory; choose another with --out, or resume this run with --resume$' train full/config.yaml --out r
expect 0 'weights' train full/config.yaml --out r --resume
[[ $(grep weights_hash r/summary.json) == "$(grep weights_hash full/summary.json)" ]] || fail "other weights after a kill"
rm -rf r && mkdir r && sed 's/seed: .*/seed: 77/' full/config.yaml >r/config.yaml
refuse '^thimble: r: exists and is not an empty directory; choose another with --out$' train full/config.yaml --out r --resume
rm -rf r && mkdir r && cp full/data.json r
refuse '^thimble: r/config.yaml: missing; begin again: thimble train CONFIG --out r --resume$' train r --resume
t "$configs/reverse.yaml" "${short[@]}" --out r --resume
[[ $(grep weights_hash r/summary.json) == "$(grep weights_hash full/summary.json)" ]] || fail "other weights of a run that begins again"

# A run that goes on with other arithmetic says so, and its summary names both.
copy half
first=$(grep -ao '"arithmetic\\*": *\\*"[a-z]*' r/checkpoints/step-6.safetensors | grep -o '[a-z]*$')
if [[ $first == fused ]]; then
  copy half
  export THIMBLE_TARGET=sse4
  expect 0 '^thimble: the arithmetic is separate from step 7 on, and was fused before, so the weights will be other ones; for the same, resume on a CPU like the first, with the same THIMBLE_TARGET$' train r --resume
  unset THIMBLE_TARGET
  grep -q '"arithmetic": "fused, separate"' r/summary.json || fail "not both" "$(cat r/summary.json)"
  expect 0 . train r --resume
  ! grep -q 'arithmetic is' <<<"$output" || fail "a run that has ended goes on with other arithmetic" "$output"
  copy half
  expect 0 . train r --resume
  ! grep -q 'arithmetic is' <<<"$output" || fail "the same arithmetic is said to be another" "$output"
else
  echo "runs_test: other arithmetic was skipped: the processor has one"
fi

# What is written in another way is the same: line ends, spacing, order of keys, comments.
copy full
python3 - r <<'END' 2>/dev/null || echo "runs_test: re-spacing by Python was skipped: no python3"
import json, sys
run = sys.argv[1]
lines = [json.loads(line) for line in open(run + "/metrics.jsonl")]
open(run + "/metrics.jsonl", "w", newline="").write("".join(json.dumps(line, sort_keys=True) + "\r\n\r\n" for line in lines))
for name in ("summary.json", "data.json"):
    values = json.load(open(f"{run}/{name}"))
    json.dump(values, open(f"{run}/{name}", "w"), sort_keys=True, indent=7)
END
{ echo "# mine"; cat full/config.yaml; } >r/config.yaml
for command in eval inspect "compare full"; do
  output=$("$thimble" $command r 2>&1) || fail "thimble $command r" "$output"
  ! grep -q '^thimble: r/' <<<"$output" || fail "thimble $command r has a remark" "$output"
done
t r --resume
grep -q '^# mine$' r/config.yaml || fail "a resume has removed a comment"

# Each file of a run is opened for reading at most once.
if strace -f -e trace=openat,open -o opened true 2>/dev/null; then
  for command in "eval full" "inspect full" "train r --resume"; do
    copy half
    # The leak sanitizer cannot work beside strace.
    ASAN_OPTIONS=detect_leaks=0 strace -f -e trace=openat,open -o opened "$thimble" $command >log 2>&1 || fail "thimble $command" "$(cat log)"
    twice=$(grep -v ENOENT opened | grep O_RDONLY | grep -v O_DIRECTORY | grep -oE '"(full|r)/[^"]*"' | sort | uniq -d)
    [[ -z $twice ]] || fail "thimble $command opens twice: $twice"
  done
else
  echo "runs_test: files that are opened were not counted: no strace"
fi

# Readers beside training see a whole run, or one that has no checkpoint yet.
rm -rf r
"$thimble" train "$configs/reverse.yaml" "${short[@]}" train.steps=400 train.checkpoint_series=true --out r --quiet &
while kill -0 $! 2>/dev/null; do
  for command in "eval r" "eval r --checkpoint best" "inspect r --sequences 2" "compare r full"; do
    status=0
    output=$("$thimble" $command --quiet 2>&1) || status=$?
    [[ $status == 0 ]] || grep -qE 'no such run directory|no checkpoint yet|not a run|no such checkpoint' <<<"$output" ||
      fail "thimble $command beside training" "$output"
  done
done
wait
echo "runs_test: ok"
