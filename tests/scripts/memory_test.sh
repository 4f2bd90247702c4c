#!/usr/bin/env bash
# Compares the memory that `config cost` announces with the most that training has in memory at once, by
# memory_estimates.py; reads hostile files, which may not take more than half a GiB; and lets memory end at every point of
# every command.
# Usage: memory_test.sh thimble peak_memory source-directory [all]   (default: some estimates and hostile files, few limits)
set -euo pipefail
thimble=$(readlink -f "$1") peak_memory=$(readlink -f "$2") source=$(readlink -f "$3") all=${4:-}
configs=$source/configs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

few=(1 24 30) step=2
if [[ -n $all ]]; then few=() step=4; fi
python3 "$source/tests/scripts/memory_estimates.py" "$thimble" "$peak_memory" "$source" "${few[@]}"

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
  weights "{$(limit=60000
awk 'BEGIN { for (i = 0; i < 900000; i++) printf "\"%d\":1,", i }')\"z\":1}"
  hostile 'dtype is missing' "${eval_hostile[@]}"
fi
weights "[$(repeated '0,' 5000000)0]"
hostile 'is the most that is read' "${eval_hostile[@]}"
printf 'task: {name: file, file: hostile.jsonl}\n' >file.yaml
for text in '[' '[],' '"",' '{"a":'; do
  printf '{"input":%s\n' "$(repeated "$text" $((1000000 / ${#text})))" >hostile.jsonl
  hostile 'hostile.jsonl:1: n' config show file.yaml  # nests too deep, or not valid
done

# ends COMMAND...: below every limit of its data, the command says in one line that memory ended or what would, with exit
# status 2, or does all that it does without a limit.
ends() {
  local limit status enough=0
  for ((limit = 3000; enough < 2; limit += limit / step + 1)); do
    ((limit < 1000000)) || fail "no limit is enough"
    rm -rf out page.html
    status=0
    (ulimit -d "$limit" && exec "$thimble" "$@" >printed 2>errors </dev/null) || status=$?
    if ((status == 0)); then
      enough=$((enough + 1))
      continue
    fi
    ((status == 2)) || fail "exit status $status" "$@"
    [[ $(wc -l <errors) -lt 12 ]] || fail "too many lines" "$@"
    grep -qE '^thimble: (out of memory|this config needs about|the attention weights of|[0-9]+ of [0-9]+ threads could)' errors ||
      fail "another message" "$@"
    [[ ! -e page.html ]] || fail "it has written a page" "$@"
    if [[ -d out ]]; then "$thimble" "$@" --resume >printed 2>errors || fail "not resumed" "$@"; fi
  done
  echo "ok: ends of memory, $1"
}
fail() {
  echo "memory_test: data of $limit KiB: $1: thimble ${*:2}" >&2
  head -n 12 errors >&2
  exit 1
}
short=(train.steps=20 train.schedule.warmup=5 train.evaluate_every=10 data.validation=100 data.test=300)
"$thimble" train "$configs/reverse.yaml" "${short[@]}" --out run --quiet
ends train "$configs/reverse.yaml" "${short[@]}" --threads 3 --out out --quiet
ends inspect run --html page.html --quiet
ends trace run "3 1 4" --quiet
"$thimble" train "$configs/names.yaml" train.steps=2 train.schedule.warmup=0 data.train=500 --out names --quiet
ends generate names --samples 3
ends compare run run --sequences 100
ends eval run --predictions page.html
if [[ -n $all ]]; then
  ends patch run --html page.html --quiet
  ends ablate run 0.0
  ends gradcheck "$configs/reverse.yaml"
fi

# A command limits itself to what the machine has left.
mkfifo requests
"$thimble" serve run <requests >replies &
exec 3>requests
for ((i = 0; i < 100; i++)); do
  limit=$(awk '/^Max data size/ { print $4 }' /proc/$!/limits)
  [[ $limit != unlimited ]] && break
  sleep 0.1
done
exec 3>&-
wait $!
awk -v limit="$limit" '/MemTotal/ { exit !(limit > 1e7 && limit < 2 * 1024 * $2) }' /proc/meminfo || fail "the limit of a command" serve

# What is lowered, as a message says, is enough.
limit=150000
lowered() {
  local pattern=$1
  shift
  if (ulimit -d $limit && exec "$thimble" "$@" >printed 2>errors); then fail "nothing to lower" "$@"; fi
  grep -qE -- "$pattern" errors || fail "no match for $pattern" "$@"
}
enough() { (ulimit -d $limit && exec "$thimble" "$@" >printed 2>errors) || fail "not enough" "$@"; }
long=(task.length=200 model.heads=16 model.d_model=32 train.batch=2 train.shards=1 train.threads=1 train.steps=2
      train.schedule.warmup=0 data.validation=8 data.test=40)
lowered '^thimble: this config needs about .* of memory, but only .* is left' train "$configs/reverse.yaml" "${long[@]}" model.d_model=2048 --out out
"$thimble" train "$configs/reverse.yaml" "${long[@]}" --out long --quiet
lowered 'sequences take .* is left; lower their number with --sequences or --examples$' inspect long --examples 40 --threads 1
enough inspect long --examples 1 --sequences 2 --threads 1
lowered 'sequences take .* is left; lower' compare long long --sequences 40
enough compare long long --sequences 1
limit=60000
awk 'BEGIN { for (i = 0; i < 900000; i++) print "word" i " a b c d\tx" }' >large.tsv
lowered '^thimble: out of memory while reading data: no room for .* more; use a smaller file$' tasks file task.file=large.tsv
head -n 90 large.tsv >small.tsv
enough tasks file task.file=small.tsv
echo "memory_test: ok"
