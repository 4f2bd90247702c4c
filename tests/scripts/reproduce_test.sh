#!/usr/bin/env bash
# Experiments that are interrupted; tests/cases/reproduce.txt has what else they do.
# Usage: reproduce_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"
subcommand=(reproduce)

mkdir -p configs/reproduce
cat >configs/small.yaml <<END
base: $configs/reverse.yaml
data: {train: 200, validation: 20, test: 20}
model: {d_model: 8}
train: {batch: 16, schedule: {warmup: 2}}
END
cat >configs/reproduce/long.yaml <<END
statement: More steps lead to a lower loss.
source: this test
kind: golden
seeds: [7, 8]
runs:
  short: {config: ../small.yaml, set: {train.steps: 5}}
  long: {config: ../small.yaml, set: {train.steps: 2000}}
values:
  early: {run: short, of: train, path: test.loss}
  late: {run: long, of: train, path: test.loss}
conditions: [{value: late, below: early}]
END

# Status 130, nothing left but what --out keeps, and the same command resumes.
interrupted() {
  : >log  # empty, so that an earlier log is not read
  "$thimble" reproduce long --jobs 1 "$@" </dev/null >log 2>&1 &
  local status=0 process=$!
  until grep -q '2/4' log; do sleep 0.02; done
  until ps --ppid "$process" -o pid= | grep -q .; do sleep 0.02; done
  kill -INT "$process"
  wait "$process" || status=$?
  ((status == 130)) || fail "an interrupted experiment has exit status $status" "$(cat log)"
}
interrupted
[[ -z $(ls runs/reproduce) ]] || fail "a temporary directory is left" "$(ls runs/reproduce)"
interrupted --out stopped
grep -q 'resume with the same command and --out stopped' log || fail "no word on how to resume" "$(cat log)"
expect 0 '^long: 4 runs, 2 already finished' long --out stopped
echo "reproduce_test: ok"
