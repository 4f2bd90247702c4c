#!/usr/bin/env bash
# Compares the memory that `config cost` announces with the most that training has in memory at once: within 10 % or
# 8 MiB, whichever is more, and never below by more than 5 % or 1 MiB. Then tries a few configs of memory_estimates.py,
# which measures every command, and reads hostile files, which may not take more than half a GiB.
# Usage: memory_test.sh thimble peak_memory source-directory [all]   (default: every eighteenth comparison, some hostile files)
set -euo pipefail
thimble=$(readlink -f "$1") peak_memory=$(readlink -f "$2") configs=$(readlink -f "$3")/configs all=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

failed=0 compared=0 listed=0
# compare CONFIG OVERRIDE...
compare() {
  local config=$1 kib bytes verdict
  shift
  if [[ -z $all ]] && ((listed++ % 18 != 1)); then return; fi
  local few=(train.steps=2 train.schedule.warmup=0 train.evaluate_every=1 train.checkpoint_every=1
             data.train=3000 data.validation=64 data.test=64)
  bytes=$("$thimble" config cost "$configs/$config.yaml" "${few[@]}" "$@" --json - |
            sed -n '/"memory_bytes"/,$ s/^ *"total": \([0-9.e+]*\),*$/\1/p')
  kib=$("$peak_memory" "$thimble" train "$configs/$config.yaml" "${few[@]}" "$@" --out run --quiet)
  rm -rf run
  verdict=$(awk -v estimate="$bytes" -v peak="$kib" 'BEGIN {
    estimate /= 1048576; peak /= 1024
    over = peak / 10 > 8 ? peak / 10 : 8
    under = peak / 20 > 1 ? peak / 20 : 1
    printf "%s: estimate %.1f MiB, peak %.1f MiB\n",
      estimate - peak <= over && peak - estimate <= under ? "ok" : "WRONG", estimate, peak }')
  echo "$verdict: $config $*"
  compared=$((compared + 1))
  [[ $verdict == ok* ]] || failed=$((failed + 1))
}

compare reverse train.threads=1
compare reverse train.threads=2
compare reverse train.threads=2 model.attention.mask=causal model.output.hidden=0 model.d_model=64 model.heads=4
compare reverse train.threads=2 train.batch=2048 train.shards=16
compare reverse train.threads=2 train.batch=1 train.shards=1
compare reverse train.threads=2 train.batch=4 task.length=1024 model.heads=4 data.validation=8 data.test=8
compare reverse train.threads=1 train.batch=4 task.length=2000 model.layers=2 data.validation=8 data.test=8
compare reverse train.threads=2 model.layers=12 model.d_model=64 model.d_ff=256 model.heads=4 model.norm=pre
compare reverse train.threads=1 train.batch=16 task.symbols=50000 model.output.hidden=0
compare reverse train.threads=2 model.d_model=512 model.d_ff=2048 model.heads=8 data.validation=8 data.test=8
compare reverse train.threads=1 train.precision=float64 model.d_model=256 model.d_ff=1024 model.heads=8 task.length=8
compare reverse train.threads=1 train.optimizer.name=sgd train.shards=1 model.d_model=512 model.d_ff=2048 task.length=8
compare reverse train.threads=2 model.dropout=0.1 model.attention.dropout=0.1 model.layers=4 model.d_model=128 \
  model.heads=4 model.activation=gelu
compare reverse train.threads=2 train.log_heads=true model.layers=2 model.d_model=64 model.heads=4
# Sentences differ in length: only many of them have the longest ones at every thread.
compare translation train.threads=2 data.validation=1000 data.test=1000
compare translation train.threads=2 data.validation=1000 data.test=1000 model.d_model=128 model.d_ff=512 model.layers=4 \
  train.steps=20
compare translation_recurrent train.threads=2
compare translation_recurrent train.threads=1 model.d_model=256

# Many symbols, a large test split, and an encoder-decoder.
python3 "$(dirname "$configs")/tests/scripts/memory_estimates.py" "$thimble" "$peak_memory" "$(dirname "$configs")" ${all:+4 12} 19 ||
  failed=$((failed + 1))

# report OPTION...: `inspect` with these options needs no more than the bound that it names where half of it is not left.
report() {
  local needs kib
  needs=$( (ulimit -v 260000; "$thimble" inspect long --quiet "$@" 2>&1 || true) | sed -nE 's/.*may need up to ([0-9.]+) MiB.*/\1/p')
  kib=$("$peak_memory" "$thimble" inspect long --quiet "$@")
  awk -v estimate="${needs:-0}" -v peak="$kib" -v what="inspect $*" 'BEGIN {
    peak /= 1024
    ok = estimate >= 0.9 * peak && estimate <= 3 * peak
    printf "%s: bound %.1f MiB, peak %.1f MiB: %s\n", ok ? "ok" : "WRONG", estimate, peak, what
    exit !ok }' || failed=$((failed + 1))
  compared=$((compared + 1))
}
"$thimble" train "$configs/reverse.yaml" train.steps=2 train.schedule.warmup=0 train.evaluate_every=1 train.batch=4 \
  train.threads=1 task.length=$((${all:+200} + 200)) model.heads=4 data.train=3000 data.validation=8 data.test=4 --out long --quiet
if [[ -n $all ]]; then report --html page.html; fi
report --json report.json

# hostile MESSAGE ARGUMENT...: thimble refuses the file, with that message
hostile() {
  local message=$1 kib
  shift
  kib=$("$peak_memory" "$thimble" "$@" 2>errors) && { echo "memory_test: accepted: $*" >&2; exit 1; }
  grep -qF -- "$message" errors || { echo "memory_test: no \"$message\" but:" >&2; head -n 3 errors >&2; exit 1; }
  ((kib <= 512 * 1024)) || { echo "memory_test: $((kib / 1024)) MiB for $*" >&2; exit 1; }
  echo "ok: $((kib / 1024)) MiB, $message"
}
repeated() { awk -v text="$1" -v n="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s", text }'; }

# A safetensors file whose header is {"a":TEXT}.
weights() {
  local size=$((${#1} + 6))
  { printf '%b' "$(printf '\\x%02x' $((size & 255)) $((size >> 8 & 255)) $((size >> 16 & 255)) $((size >> 24)) 0 0 0 0)"
    printf '{"a":%s}' "$1"; } >hostile.safetensors
}
eval_hostile=(eval --config "$configs/reverse.yaml" --weights hostile.safetensors)
weights "[$(repeated '[],' 3300000)[]]"
hostile 'must be an object of dtype' "${eval_hostile[@]}"
if [[ -n $all ]]; then
  weights "{\"shape\":[$(repeated '0,' 4900000)0]}"
  hostile 'dtype is missing' "${eval_hostile[@]}"
  weights "{$(awk 'BEGIN { for (i = 0; i < 900000; i++) printf "\"%d\":1,", i }')\"z\":1}"
  hostile 'dtype is missing' "${eval_hostile[@]}"
fi
weights "[$(repeated '0,' 5000000)0]"
hostile 'is the most that is read' "${eval_hostile[@]}"
printf 'task: {name: file, file: hostile.jsonl}\n' >file.yaml
for text in '[' '[],' '"",' '{"a":'; do
  printf '{"input":%s\n' "$(repeated "$text" $((1000000 / ${#text})))" >hostile.jsonl
  hostile 'hostile.jsonl:1: n' config show file.yaml  # nests too deep, or not valid
done
((failed == 0)) || { echo "memory_test: $failed of $compared estimates are wrong" >&2; exit 1; }
echo "memory_test: ok, $compared estimates"
