#!/usr/bin/env bash
# Compares the memory that `config cost` announces with the most that training has in memory at once: within 10 % or
# 8 MiB, whichever is more, and never below by more than 5 % or 1 MiB.
# Usage: memory_test.sh thimble peak_memory source-directory
set -euo pipefail
thimble=$(readlink -f "$1") peak_memory=$(readlink -f "$2") configs=$(readlink -f "$3")/configs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

failed=0 compared=0
# compare CONFIG OVERRIDE...
compare() {
  local config=$1 kib bytes verdict
  shift
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
compare reverse train.threads=2 train.watch_heads=true model.layers=2 model.d_model=64 model.heads=4
# Sentences differ in length: only many of them have the longest ones at every thread.
compare translation train.threads=2 data.validation=1000 data.test=1000
compare translation train.threads=2 data.validation=1000 data.test=1000 model.d_model=128 model.d_ff=512 model.layers=4
compare translation_recurrent train.threads=2
compare translation_recurrent train.threads=1 model.d_model=256
((failed == 0)) || { echo "memory_test: $failed of $compared estimates are wrong" >&2; exit 1; }
echo "memory_test: ok, $compared estimates"
