#!/usr/bin/env bash
# Calls of the system that fail: every write, truncation, fsync, rename, removal, open, allocation and thread in turn, and
# all calls of that kind after it, while runs are trained, resumed, swept and inspected. The program ends with exit status 2
# and one line that says why, every file that is there is complete, and what is resumed ends as if nothing had happened.
# Usage: faults_test.sh THIMBLE_BINARY FAULTS_LIBRARY [all]
#   all: at every call, at some 1,000 allocations of each command, and each time also with one call failing alone;
#   takes an hour. Otherwise at a few calls of each kind.
set -euo pipefail
thimble=$(realpath "$1")
library=$(realpath "$2")
all=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OPENBLAS_NUM_THREADS=1  # its threads start before main
kinds=(write truncate fsync rename remove open allocation thread)

cat >tiny.yaml <<'YAML'
task: {name: reverse, symbols: 4, length: 3}
data: {train: 20, validation: 4, test: 4}
model: {d_model: 4, heads: 1, layers: 1, d_ff: 4, output: {per: position}}
train: {steps: 4, batch: 4, evaluate_every: 2, checkpoint_every: 1, threads: 4, log_heads: true}
YAML
cat >sweep.yaml <<'YAML'
config: tiny.yaml
list:
  - {train.steps: 2}
YAML

failures=0
fail() {  # MESSAGE: what did not hold; the run goes on
  failures=$((failures + 1))
  printf 'faults_test: %s %s %s%s: %s\n' "$subject" "$kind" "$at" "${once:+ (once)}" "$1" >&2
  sed 's/^/    /' said >&2
}

with_faults() {  # COMMAND...: with the chosen calls failing; sets status, and writes its messages to the file said
  status=0
  local plan=$kind:$at+
  [[ -z $once ]] || plan=$kind:$at
  env LD_PRELOAD="$library" FAULTS="$plan" FAULT_COMMAND=$command "$@" >out 2>said </dev/null || status=$?
}

# Process substitutions are not used: after some ten thousand processes their numbers come again, and bash then takes
# the exit status of an old substitution for that of a new command.
differ() {  # FUNCTION RUN REFERENCE: whether the function prints something else for the two
  "$1" "$2" >of_run || true
  "$1" "$3" >of_reference
  ! cmp -s of_run of_reference
}

hash_of() { grep -o '"weights_hash": "[0-9a-f]*"' "$1/summary.json"; }
timeless() { sed 's/,"seconds":[^,]*}$/}/' "$1/metrics.jsonl"; }
files_of() { (cd "$1" && find . | sort); }

same_run() {  # RUN REFERENCE
  if differ hash_of "$1" "$2"; then
    fail "other weights"
  elif differ timeless "$1" "$2"; then
    fail "other metrics"
  elif differ files_of "$1" "$2"; then
    fail "other files: $(files_of "$1" | tr '\n' ' ')"
  fi
}

complete_weights() {  # FILE: its size is what its header says
  local header end
  header=$(od -An -tu8 -N8 "$1")
  end=$(head -c $((8 + header)) "$1" | grep -ao '"data_offsets":\[[0-9]*,[0-9]*' | sed 's/.*,//' | sort -n | tail -n 1)
  (($(stat -c %s "$1") == 8 + header + end))
}

whole_files() {  # DIRECTORY: every file in it is complete, and none is left that is not the user's
  [[ -d $1 ]] || return 0
  local file
  find "$1" -type f >written
  while read -r file; do
    case $file in
      *.tmp | */.lock) [[ $kind == allocation ]] || fail "$file is left" ;;  # a library's destructors need memory
      *.safetensors) complete_weights "$file" || fail "$file is torn" ;;
      *.json) [[ $(tail -c 2 "$file") == [}\]] ]] || fail "$file is torn" ;;
      *.jsonl) ! grep -vqE '^\{.*\}$' "$file" && [[ -z $(tail -c 1 "$file") ]] || fail "$file is torn" ;;
      *config.yaml) grep -q '^  threads:' "$file" || fail "$file is torn" ;;
    esac
  done <written
}

# Each subject has a start, which is not disturbed, and a check of what a disturbed run has left.
start_train() { rm -rf run; }
run_train() { "$@" "$thimble" train tiny.yaml --out run --quiet; }
check_train() {
  whole_files run
  if ((status != 0)); then
    "$thimble" train tiny.yaml --out run --resume --quiet 2>said || fail "it cannot be resumed"
    [[ ! -s said ]] || fail "resumed, but not from everything that was written"
  fi
  same_run run "${1:-whole}"
}

start_resume() { rm -rf run && cp -r half run; }
run_resume() { "$@" "$thimble" train tiny.yaml --out run --resume --quiet; }
check_resume() { check_train longer; }

start_inspect() { rm -rf run html json && cp -r whole run; }
run_inspect() {
  "$@" "$thimble" inspect run --sequences 4 --examples 1 --html html --json json --quiet
}
check_inspect() {
  local file
  diff -rq run whole >/dev/null || fail "the run has changed"
  for file in html json; do
    [[ ! -e $file ]] || cmp -s "$file" "inspected/$file" || fail "$file is torn or left"
  done
  ((status != 0)) || [[ -e html && -e json ]] || fail "files are missing"
}

start_sweep() { rm -rf swept; }
run_sweep() { "$@" "$thimble" sweep sweep.yaml --out swept --jobs 1 --quiet; }
check_sweep() {
  whole_files swept
  ((status == 0)) || "$thimble" sweep sweep.yaml --out swept --jobs 1 --quiet 2>said || fail "it cannot be resumed"
  same_run "$(echo swept/runs/*/)" "$(echo swept-whole/runs/*/)"
}

start_child() { start_sweep; }
run_child() { run_sweep "$@"; }
check_child() { check_sweep; }

one_message() {  # on one line, or on one and one more for each problem of a config
  [[ $(<said) == "thimble: "* && ($(grep -c '' said) == 1 || $(head -n 1 said) == *": "[0-9]*" problem"*) ]]
}

disturb() {
  "start_$subject"
  "run_$subject" with_faults
  if [[ $subject == child ]] && ((status == 1)); then  # the message is in the log of the child
    status=2
    cp swept/runs/*.log said
  fi
  # A run whose result cannot be read has failed; the sweep goes on, says so at the end, and tries it again next time.
  if [[ $subject == sweep && $(<said) == "thimble: "*": failed: "*"summary.json: cannot be read: "* ]] && ((status == 1)); then
    status=2
  fi
  if ((status == 0)); then
    unharmed=$((unharmed + 1))
  elif [[ $kind == thread && $(<said) != *" threads could be started: "*--threads* ]]; then
    fail "no word about threads"
  elif ((status != 2)) || ! one_message; then
    fail "exit status $status, and not 2 with one message"
  fi
  "check_$subject"
}

points() {  # COUNT: at which calls to fail
  local n=1 step
  while ((n <= $1)); do
    echo "$n"
    if [[ -z $all ]]; then
      step=$(($1 / (kind_is_allocation ? 15 : 5)))
    elif ((kind_is_allocation)); then
      step=$(((n < $1 - n ? n : $1 - n) / 100))
    else
      step=1
    fi
    n=$((n + (step > 1 ? step : 1)))
  done
}

"$thimble" train tiny.yaml --out whole --quiet
"$thimble" train tiny.yaml train.steps=2 --out half --quiet
cp -r half longer
"$thimble" train tiny.yaml --out longer --resume --quiet
"$thimble" sweep sweep.yaml --out swept-whole --jobs 1 --quiet
start_inspect
run_inspect env
mkdir inspected && mv html json inspected

faults=0
for subject in train resume inspect sweep child; do
  command=$subject
  [[ $subject != resume && $subject != child ]] || command=train
  for kind in "${kinds[@]}"; do
    kind_is_allocation=0
    [[ $kind != allocation ]] || kind_is_allocation=1
    rm -f count
    "start_$subject"
    "run_$subject" env LD_PRELOAD="$library" FAULT_COUNT="$PWD/count" FAULT_COMMAND=$command >/dev/null
    calls=$(sed -n "s/^$kind //p" count) runs=0 unharmed=0
    for at in $(points "$calls"); do
      for once in "" ${all:+1}; do
        runs=$((runs + 1))
        disturb
      done
    done
    faults=$((faults + runs))
    printf '%-8s %-10s %6d calls, %5d runs with faults, %4d of them unharmed\n' $subject $kind "$calls" $runs $unharmed
  done
done
# A file system without locks, which flushes no directories: training works, with one remark.
subject=train kind=lock at=1 once=
status=0
env LD_PRELOAD="$library" FAULTS=lock:1+,flush:1+ "$thimble" train tiny.yaml --out unlocked --quiet >out 2>said </dev/null || status=$?
[[ $status == 0 && $(grep -c 'the file system has no locks; see to it that no other process writes to the run' said) == 1 && $(grep -c '' said) == 1 ]] ||
  fail "exit status $status, and not 0 with one remark"
# A user who may have no further thread, not even one that a library starts before main. Limits do not hold for root.
subject=train kind=threads at=limit once=
user=()
if ((EUID == 0)); then user=(setpriv --reuid 65534 --clear-groups); fi
if ((EUID != 0)) || command -v setpriv >/dev/null; then
  mkdir public && cp "$thimble" tiny.yaml public && chmod 755 . && chmod 777 public
  status=0
  (cd public && OPENBLAS_NUM_THREADS=2 "${user[@]}" bash -c 'ulimit -u 1; exec ./thimble train tiny.yaml --out run --quiet') \
    >out 2>said </dev/null || status=$?
  [[ $status == 2 && $(<said) == "thimble: 1 of 4 threads could be started: "* && $(grep -c '' said) == 1 ]] ||
    fail "exit status $status, and not 2 with one message about threads"
  # Checkpoints that cannot be written: more steps are refused before anything of the run changes.
  at=closed
  (cd public && "${user[@]}" bash -c './thimble train tiny.yaml --out done --quiet && chmod 555 done/checkpoints && cp -a done before')
  status=0
  (cd public && "${user[@]}" ./thimble train done --resume train.steps=8 --quiet) >out 2>said </dev/null || status=$?
  [[ $status == 2 && $(<said) == *checkpoints*"cannot be written: Permission denied"* ]] && diff -r public/before public/done >&2 ||
    fail "exit status $status, and not 2 with the run as it was"
  chmod 755 public/*/checkpoints
fi
[[ -z ${THIMBLE_NUMBERS:-} ]] || printf 'faults injected, one kind at a time%s\t%d\n' "${all:+, at every call}" $faults >>"$THIMBLE_NUMBERS"
((failures == 0)) || { echo "faults_test: $failures of $faults went wrong" >&2; exit 1; }
echo "faults_test: ok, $faults faults"
