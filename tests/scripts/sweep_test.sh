#!/usr/bin/env bash
# Sweeps that are interrupted or killed, and two at once in one directory; tests/cases has what else sweeps do.
# Usage: sweep_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"
subcommand=(sweep)

hashes() { grep -o '"weights_hash": "[0-9a-f]*"' "$1/sweep.json"; }
cat >base.yaml <<END
task: {name: reverse, symbols: 4, length: 3}
data: {train: 20, validation: 4, test: 4}
model: {d_model: 4, d_ff: 4}
train: {steps: 400, batch: 4, shards: 1, schedule: {warmup: 1}}
END
printf 'config: base.yaml\ngrid: {model.heads: [1, 2]}\nseeds: [7, 8]\n' >s.yaml

# start ARGUMENT... DIRECTORY: a sweep in the background, with its process in $sweep and its first run, held, in $child. Begins
# again where the run ended before it was held.
start() {
  for _ in {1..50}; do
    "$thimble" sweep s.yaml "$@" </dev/null >log 2>&1 &
    sweep=$!
    child=
    until [[ -n $child ]] && kill -STOP "$child" 2>/dev/null; do
      kill -0 "$sweep" 2>/dev/null || break
      read -r child _ <"/proc/$sweep/task/$sweep/children" || true
    done 2>/dev/null
    [[ -z $child || -n $(find "${@: -1}" -name summary.json) ]] || return 0
    kill -KILL "$sweep" ${child:+"$child"} 2>/dev/null || true
    wait "$sweep" 2>/dev/null || true
    rm -rf "${@: -1}"
  done
  fail "no run was held" "$(cat log)"
}

# ends STATUS: the sweep in the background ends with it.
ends() {
  local status=0
  wait "$sweep" 2>/dev/null || status=$?
  ((status == $1)) || fail "the sweep has exit status $status, not $1" "$(cat log)"
}

# Interrupted: status 130 after its runs have ended, and the same command resumes to the same results.
start --jobs 1 --out stopped
kill -INT "$sweep"
until grep -q 'interrupted: waiting for 1 run to save; interrupt again to stop at once' log; do sleep 0.02; done
kill -CONT "$child" 2>/dev/null || true  # it has ended if there was nothing to save
ends 130
grep -q 'resume with the same command and --out stopped' log || fail "no word on how to resume" "$(cat log)"
expect 0 '^stopped: 4 runs: .*[34] waiting' --status stopped
grep -qE '"failed": 0$' stopped/sweep.json || fail "an interrupted run has failed" "$(cat stopped/sweep.json)"
expect 0 'heads=2 +2/2' s.yaml --out stopped
expect 0 'heads=2 +2/2' s.yaml --out whole
[[ $(hashes stopped) == "$(hashes whole)" ]] || fail "an interruption changed results"

# Interrupted twice, its runs end at once; killed, they end too.
start train.steps=1000000 --jobs 1 --out twice
kill -TERM "$sweep"
until grep -q 'interrupt again to stop at once' log; do sleep 0.02; done
kill -TERM "$sweep" 2>/dev/null || true
ends 130
! kill -0 "$child" 2>/dev/null || fail "a run goes on after a second signal"
start train.steps=1000000 --jobs 1 --out killed
kill -KILL "$sweep"
kill -CONT "$child" 2>/dev/null || true
ends 137
while kill -0 "$child" 2>/dev/null; do sleep 0.02; done

# A run that is killed has failed. No more runs at a time than jobs.
start --jobs 1 --out one
(($(wc -w <"/proc/$sweep/task/$sweep/children") == 1)) || fail "more than one run at a time"
kill -KILL "$child"
ends 1
grep -qE '^4/4  ' log && grep -qE '^  seed 7: failed: ended by signal 9$' log || fail "no failed run" "$(cat log)"

# A run that another process has taken is left to it; a sweep without a limit waits for it.
start --jobs 1 --out shared
expect 0 '^1/4  heads=1 seed 8' s.yaml --out shared --max-runs 1
expect 0 '^heads=1 seed 7: running, step [0-9]+, ' --status shared
first=$child first_sweep=$sweep
"$thimble" sweep s.yaml --out shared >log2 2>&1 & second=$!
until [[ $(find shared/runs -name summary.json | wc -l) == 3 ]]; do sleep 0.02; done
sleep 0.1
kill -0 $second 2>/dev/null || fail "a sweep does not wait for a run of another one" "$(cat log2)"
kill -CONT "$first"
wait $second || fail "exit status $? of a sweep that waited" "$(cat log2)"
sweep=$first_sweep
ends 0
[[ $(hashes shared) == "$(hashes whole)" ]] || fail "two sweeps at once change results"

# A run whose sweep is gone and that is still saving is not started again until it has ended.
printf 'config: base.yaml\nseeds: [7]\n' >s.yaml
start train.steps=100000 --out saving
kill -CONT "$child"
until [[ -s saving/runs/001-seed_7/metrics.jsonl ]]; do sleep 0.01; done
kill -STOP "$child"
kill -KILL "$sweep"
ends 137
"$thimble" sweep s.yaml train.steps=100000 --out saving >log 2>&1 & sweep=$!
sleep 0.5
kill -0 "$sweep" 2>/dev/null || fail "a sweep does not wait for a run that is still saving" "$(cat log)"
kill -CONT "$child"
ends 0
echo "sweep_test: ok"
