#!/usr/bin/env bash
# Runs that are killed at random moments, interrupted, or run out of disk, and are resumed: each must end with the
# weights and the metrics (times aside) of a run that nothing happened to.
# Usage: kill_test.sh THIMBLE_BINARY SOURCE_DIR [KILLS]
set -euo pipefail
thimble=$(realpath "$1")
source=$(realpath "$2")
kills=${3:-100}

work=$(mktemp -d)
cleanup() {
  mountpoint -q "$work/small" && umount "$work/small"
  rm -rf "$work"
}
trap cleanup EXIT
cd "$work"

fail() {
  echo "kill_test: $1" >&2
  exit 1
}

config=("$source/configs/reverse.yaml" train.steps=200 train.batch=32 data.train=5000 data.validation=100 data.test=100
  train.evaluate_every=20 train.checkpoint_every=12 train.log_heads=true)
quiet() { "$thimble" train "$@" --quiet; }
hash_of() { grep -o '"weights_hash": "[0-9a-f]*"' "$1/summary.json"; }
timeless() { sed 's/,"seconds":[^,]*}$/}/' "$1/metrics.jsonl"; }
same_as_whole() {  # RUN WHAT
  [[ $(hash_of "$1") == $(hash_of whole) ]] || fail "$2: other weights"
  cmp -s <(timeless "$1") <(timeless whole) || fail "$2: other metrics"
}

begin=$(date +%s%N)
quiet "${config[@]}" --out whole
nanoseconds=$(($(date +%s%N) - begin))

# kill -9, several times a run, anywhere between its start and its end. The time to wait follows what the machine can
# do meanwhile: it shrinks after a run that came to its end, and grows after one that did not, so that one in six does.
done_kills=0 runs=0
while ((done_kills < kills)); do
  rm -rf run
  for _ in 1 2 3 4 5; do
    threads=$((RANDOM % 2 + 1))
    "$thimble" train "${config[@]}" --out run --resume --threads $threads --quiet &
    pid=$!
    sleep "$(awk -v t=$nanoseconds -v r=$RANDOM 'BEGIN { printf "%.4f", 0.4e-9 * t * r / 32768 }')"
    if kill -9 $pid 2>/dev/null; then
      done_kills=$((done_kills + 1)) nanoseconds=$((nanoseconds * 21 / 20))
    else
      nanoseconds=$((nanoseconds * 4 / 5))
    fi
    wait $pid 2>/dev/null || true
  done
  quiet "${config[@]}" --out run --resume
  same_as_whole run "killed run $runs"
  runs=$((runs + 1))
done
[[ -z $(find run -name '*.tmp' -o -name '.lock') ]] || fail "leftovers: $(ls -aR run)"

# Signals: the state is saved, the command to resume is shown and works, exit status 130. Those that the kernel and the
# shell may both send come twice.
for signal in INT TERM HUP USR1 USR2 XCPU; do
  rm -rf run
  "$thimble" train "${config[@]}" train.steps=600000 --out run --threads 1 2>said &
  pid=$!
  until grep -q '"step":60,' run/metrics.jsonl 2>/dev/null; do sleep 0.01; done
  kill -s $signal $pid
  [[ $signal == INT || $signal == TERM ]] || kill -s $signal $pid 2>/dev/null || true
  status=0
  wait $pid || status=$?
  ((status == 130)) || fail "SIG$signal: exit status $status"
  grep -q "thimble train run --resume" said || fail "SIG$signal: no word on how to resume: $(cat said)"
  steps=$(sed -n 's/.*stopped after step \([0-9]*\);.*/\1/p' said)
  [[ -f run/checkpoints/step-$steps.safetensors ]] || fail "SIG$signal: step $steps is not saved"
  [[ $(tail -n 1 run/metrics.jsonl) == "{\"step\":$steps,"* ]] || fail "SIG$signal: metrics go beyond step $steps"
  [[ ! -e run/summary.json ]] || fail "SIG$signal: a summary of an unfinished run"
done
quiet "${config[@]}" --out run2
status=0
quiet "${config[@]}" --out run2 2>said || status=$?
((status == 2)) || fail "a finished run was written over"

# The second signal ends it at once: a step of this one takes seconds.
"$thimble" train "$source/configs/bench/base.yaml" train.batch=1024 data.validation=8 data.test=8 --out slow 2>/dev/null &
pid=$!
until [[ -f slow/config.yaml ]]; do sleep 0.05; done
sleep 0.3
kill -INT $pid
sleep 0.2
kill -0 $pid 2>/dev/null || fail "one signal did not wait for the step"
kill -INT $pid
status=0
wait $pid || status=$?
((status == 130)) || fail "second signal: exit status $status"
[[ ! -s slow/metrics.jsonl ]] || fail "second signal: a step was finished"

# Two processes never write one run.
"$thimble" train "${config[@]}" train.steps=600000 --out held --quiet 2>/dev/null &
pid=$!
until [[ -s held/metrics.jsonl ]]; do sleep 0.01; done
status=0
quiet "${config[@]}" train.steps=600000 --out held --resume 2>said || status=$?
((status == 2)) || fail "a second writer: exit status $status"
grep -q "held: in use by process $pid on " said || fail "the holder is not named: $(cat said)"
kill -9 $pid
wait $pid 2>/dev/null || true

# A disk that fills up, and files that may not grow: an error, and the checkpoint before stays.
no_space() {  # RUN
  local status=0
  quiet "${config[@]}" --out "$1" 2>said || status=$?
  ((status == 2)) || fail "$1: no space: exit status $status: $(cat said)"
  grep -qE 'cannot be written: (No space left on device|File too large)' said || fail "$1: no reason: $(cat said)"
  [[ -z $(find "$1" -name '*.tmp') ]] || fail "$1: a half-written file stays"
}
mkdir small
if mount -t tmpfs -o size=420k tmpfs small 2>/dev/null; then
  no_space small/run
  mount -o remount,size=8m small
  quiet "${config[@]}" --out small/run --resume
  same_as_whole small/run "full disk"
  umount small
else
  echo "kill_test: no right to mount, so without the full disk"
fi
(
  ulimit -f 60
  no_space limited
)
quiet "${config[@]}" --out limited --resume
same_as_whole limited "file size limit"

# A directory without permission to write (root may write everywhere).
if ((EUID != 0)); then
  mkdir locked && chmod a-w locked
  status=0
  quiet "${config[@]}" --out locked/run 2>said || status=$?
  ((status == 2)) || fail "no permission: exit status $status"
fi

# Damage to the newest checkpoint: said, and the one before it is used.
damage() {  # NAME COMMAND FILE...
  rm -rf run
  "$thimble" train "${config[@]}" --out run --quiet &
  pid=$!
  until compgen -G 'run/checkpoints/step-1??.safetensors' >found; do sleep 0.005; done
  kill -9 $pid
  wait $pid 2>/dev/null || true
  newest=$(ls run/checkpoints/step-*.safetensors | sort -t- -k2 -n | tail -n 1)
  "${@:2}" "$newest"
  quiet "${config[@]}" --out run --resume 2>said
  grep -q "$newest: .*set aside" said || fail "$1: not a word about it: $(cat said)"
  same_as_whole run "$1"
}
flip_bit() { printf '\x55' | dd of="$1" bs=1 seek=$(($(stat -c %s "$1") - 999)) conv=notrunc status=none; }
damage "truncated" truncate -s -1
damage "empty" truncate -s 0
damage "flipped bit" flip_bit

echo "kill_test: ok, $done_kills kills in $runs runs"
[[ -z ${THIMBLE_NUMBERS:-} ]] || printf 'kills of training\t%d\n' "$done_kills" >>"$THIMBLE_NUMBERS"
