#!/usr/bin/env bash
# Reading a file four times as large takes four times the work, not sixteen times. Work is counted in instructions, by
# valgrind, so the result depends on no clock and no load: from 10,000 to 40,000 parts it may grow by 5, which leaves
# room for n log n, 4.6, and for a quadratic term of 9 % at most.
# Exits with 77 and a message without valgrind, or where it cannot run the program.
# Usage: growth_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"
command -v valgrind >/dev/null || { echo "growth: skipped: no valgrind; on Debian: scripts/setup.sh valgrind"; exit 77; }
export OPENBLAS_NUM_THREADS=1
# Where the processor does not report rdtscp, valgrind refuses that instruction, which Highway's library executes.
status=0
valgrind --tool=none "$thimble" --version >/dev/null 2>&1 || status=$?
((status != 132)) || { echo "growth: skipped: this valgrind cannot run thimble on this processor"; exit 77; }

# instructions STATUS PATTERN ARGUMENT...: what `thimble ARGUMENT...` executes; exit status and output must match.
instructions() {
  local wanted=$1 pattern=$2 status=0
  shift 2
  valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null --log-file=counts \
    "$thimble" "$@" </dev/null >printed 2>&1 || status=$?
  ((status == wanted)) || fail "thimble $*: exit status $status, not $wanted" "$(head -c 2000 printed)"
  grep -qE -- "$pattern" printed || fail "thimble $*: no match for $pattern in" "$(head -c 2000 printed)"
  sed -n 's/.*I *refs: *//p' counts | tr -d ,
}

# repeated COUNT TEXT: the text so many times, with @ as their number, from 1.
repeated() { awk -v n="$1" -v text="$2" 'BEGIN { for (i = 1; i <= n; ++i) { line = text; gsub(/@/, i, line); printf "%s", line } }'; }

# grows WHAT STATUS PATTERN ARGUMENT...: calls WHAT with a number of parts, to write the file that the command reads.
grows() {
  local what=$1 n none few many ratio
  shift
  for n in 100 10000 40000; do
    "$what" "$n"
    instructions "$@" >"count_$n"
  done
  read -r none <count_100 && read -r few <count_10000 && read -r many <count_40000
  ratio=$(awk -v none="$none" -v few="$few" -v many="$many" 'BEGIN { printf "%.2f", (many - none) / (few - none) }')
  echo "$what: $((few / 1000000)) and $((many / 1000000)) million instructions, times $ratio"
  awk -v ratio="$ratio" 'BEGIN { exit !(ratio < 5) }' || slow+=" $what"
}
slow=

# Weights, and data.
safetensors() {
  { printf '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    awk -v n="$1" 'BEGIN { for (i = 1; i <= n; ++i)
      printf ",\"t%d\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i, 4 * i, 4 * i + 4 }'
    printf '}'; } >header
  { printf "%016x" "$(stat -c %s header)" | tac -rs .. | xxd -r -p
    cat header
    head -c $((4 * ($1 + 1))) /dev/zero; } >many.safetensors
}
metadata() {
  { printf '{"__metadata__":{"a":"b"'; repeated "$1" ',"k@":"v"'; printf '}}'; } >header
  { printf "%016x" "$(stat -c %s header)" | tac -rs .. | xxd -r -p; cat header; } >many.safetensors
}
objects() { { printf '{"input":[1'; repeated "$1" ',{}'; printf '],"target":1}\n'; } >many.jsonl; }
keys() { { printf '{"input":1,"target":1'; repeated "$1" ',"k@":1'; printf '}\n'; } >many.jsonl; }
json_rows() { repeated "$1" '{"input":["a",@],"target":"b"}'$'\n' >many.jsonl; }
tokens() { { echo $'a\ta'; repeated "$1" $'w@ b\ta\n'; } >many.tsv; }
bad_rows() { repeated "$1" $'a\tb\tc@\n' >many.tsv; }
vocabulary() { { echo a; repeated "$1" $'w@\n'; } >vocabulary.txt; }
repeated 100 $'w@\ta\n' >few.tsv
echo 'task: {name: copy, length: 4}' >copy.yaml
for file in many.jsonl many.tsv "few.tsv, vocabulary_file: vocabulary.txt"; do
  printf 'task: {name: file, file: %s}\nmodel: {output: {per: sequence}}\ntrain: {batch: 1, shards: 1}\n' "$file" >"${file##*[. ]}.yaml"
done
grows safetensors 2 'unexpected tensor' eval --config copy.yaml --weights many.safetensors
grows metadata 2 'there is no tensor' eval --config copy.yaml --weights many.safetensors
grows objects 2 'must be a text, an integer of 64 bits' tasks --config jsonl.yaml
grows keys 2 'unknown key' tasks --config jsonl.yaml
grows json_rows 0 . tasks --config jsonl.yaml
grows tokens 0 . tasks --config tsv.yaml
grows bad_rows 2 '2 tabs' tasks --config tsv.yaml
grows vocabulary 0 . tasks --config txt.yaml

# Configs.
config() { { echo 'train:'; repeated "$1" $'  k@: 1\n'; } >many.yaml; }
nested_list() { { echo 'task: [1'; repeated "$1" ', @'; echo ']'; } >many.yaml; }
grows config 2 'unknown key' config show many.yaml
grows nested_list 2 'not a list' config show many.yaml

# Runs and sweeps.
small=(model.d_model=8 model.heads=2 model.layers=1 train.steps=2 train.batch=4 train.threads=1
  data.train=8 data.validation=4 data.test=4)
"$thimble" train copy.yaml "${small[@]}" --out run --quiet
cp -r run whole
metrics() {
  rm -rf run
  "$thimble" train copy.yaml "${small[@]}" train.steps="$1" --out run --quiet 2>/dev/null
}
summary() { { printf '{"a":1'; repeated "$1" ',"k@":1'; printf ','; tail -c +2 whole/summary.json; } >run/summary.json; }
grows metrics 0 . compare run whole
rm -rf run
cp -r whole run
grows summary 0 . compare run whole

[[ -z $slow ]] || fail "work that grows faster than the file:$slow"
echo "growth: ok"
