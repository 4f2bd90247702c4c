#!/usr/bin/env bash
# Experiments: verdicts, exit statuses, result files, kept runs, signals.
# Usage: reproduce_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"
subcommand=(reproduce)

# write NAME KIND LIMIT [KEYS]: an experiment whose late loss, about 2, must be below LIMIT.
write() {
  cat >"configs/reproduce/$1.yaml" <<END
statement: More steps lead to a lower loss.
source: this test
kind: $2
seeds: [7, 8]
${4:-}
runs:
  short: {config: ../base.yaml, set: {train.steps: 5}}
  long: {config: ../base.yaml, set: {train.steps: 40}, evaluate: {shorter: {task.length: 5}}}
values:
  early: {run: short, of: train, path: test.loss}
  late: {run: long, of: train, path: test.loss}
  shorter: {run: long, of: shorter, path: test.loss}
  never: {run: long, of: metrics, path: "*.step", where: {split: train, loss: {below: 0}}, take: first, otherwise: never}
  norm: {run: long, of: metrics, path: "*.gradient_norm", where: {split: train, step: {at_most: 10}}, take: mean}
  mirror: {run: long, of: inspect, path: heads.*.scores.mirror.value, take: max}
  order: {run: short, of: permutation, path: relative}
conditions:
  - {value: late, below: early}
  - {value: late, below: $3}
END
}

mkdir -p configs/reproduce
cat >configs/base.yaml <<END
base: $configs/reverse.yaml
data: {train: 200, validation: 20, test: 20}
train: {batch: 16, schedule: {warmup: 2}, evaluate_every: 20}
END
write holds golden 10
write fails golden 0.5
write refuted claim 0.5
write slow control 10 'quick: false'

# An experiment that passes: its verdict, a line for each value, a table of 80 columns, results in two files, as the
# message on the former --html says.
expect 0 '^holds  golden, PASS, [0-9]+ s$' holds --out kept --json holds.json --markdown holds.md
grep -qE '^  late < early +2/2( +[0-9.]+){3}$' <<<"$output" || fail "no condition" "$output"
grep -qE '^  never( +never){3}$' <<<"$output" || fail "nothing is never" "$output"
grep -qE '^holds: 4/4  (short|long) seed [78]' <<<"$output" || fail "no progress" "$output"
grep -qE '^holds: norm: [0-9.]+ [0-9.]+$' <<<"$output" || fail "no line for a value" "$output"
! grep -qE '.{81}' <<<"$output" || fail "wider than 80 columns" "$output"
grep -q '"verdict": "PASS"' holds.json || fail "no verdict in JSON" "$(cat holds.json)"
grep -q '^## holds: PASS$' holds.md || fail "no verdict in Markdown" "$(cat holds.md)"
grep -qE '^\| late( \| [0-9.]+){5} \|$' holds.md || fail "no numbers in Markdown" "$(cat holds.md)"

# Kept runs are not trained again and give the same result.
weights() { find "$1" -name '*.safetensors' -printf '%p %T@\n' | sort; }
before=$(weights kept)
expect 0 '4 already finished' holds --out kept --json again.json
[[ $before == "$(weights kept)" ]] || fail "trained again"
diff <(grep -v '"seconds"' holds.json) <(grep -v '"seconds"' again.json) || fail "another result"

# A golden that fails gives exit status 1, a claim that fails does not. Without --out no file is left.
expect 1 '^fails  golden, FAIL, ' fails --jobs 1
expect 0 '^refuted  claim, FAIL, ' refuted
[[ -z $(ls runs/reproduce) ]] || fail "a temporary directory is left" "$(ls runs/reproduce)"

# Quick experiments as JSON only; a list, which runs nothing.
expect 1 '"name": "refuted"' --quick --quiet --json - --out kept
[[ $output == "{"*"}" ]] || fail "standard output is not JSON alone" "$output"
! grep -q '"name": "slow"' <<<"$output" || fail "--quick runs what is not quick"
expect 0 '^slow, control$' --list
expect 0 '^slow, control$' --out nothing
expect 0 '^thimble reproduce NAME runs one of them, thimble reproduce all runs every one$'
[[ ! -e nothing ]] || fail "a list wrote something"
grep -q '^holds, golden, quick$' <<<"$output" || fail "holds is not in the list" "$output"

# An experiment whose runs read the file of --data: without it, it is left out of all and refused by name.
cat >configs/reproduce/read.yaml <<END
statement: A text is learned.
source: this test
kind: claim
data: a text of words, a line each
seeds: [7]
runs: {trained: {config: $configs/names.yaml, set: {train.steps: 60, train.schedule.warmup: 5}}}
values: {labels: {run: trained, of: train, path: test.labels}}
conditions: [{value: labels, above: 100}]
END
for i in {1..200}; do echo "w$i"; done >t.txt
expect 0 '^  requires --data FILE: a text of words, a line each$' --list
expect 1 'read: skipped, as it requires --data FILE: a text of words, a line each' all --out kept --json skipped.json
grep -q '"needs": "a text of words, a line each"' skipped.json || fail "not skipped" "$(cat skipped.json)"
expect 2 'read requires --data FILE: a text of words, a line each' read
expect 2 '--data is for one experiment that requires a file; name it' holds --data t.txt
expect 2 'none.txt: cannot be read|none.txt: No such file|no such file' read --data none.txt
expect 0 '^read  claim, (PASS|FAIL), ' read --data t.txt --out kept --jobs 1
grep -q 'file: .*/t.txt' kept/read/runs/*/config.yaml || fail "another file was read" "$(cat kept/read/runs/*/config.yaml)"
rm -r configs/reproduce/read.yaml kept/read

# A run that fails and a path without a value: reported, NOT SHOWN, exit status 1.
sed 's/train.steps: 5}/train.steps: 20, train.optimizer.name: sgd, train.optimizer.lr: 100, train.optimizer.momentum: 0.99, train.clip_norm: 0, model.norm: pre, model.layers: 4, model.positions: none}/
  s/mirror.value/miror.value/' configs/reproduce/refuted.yaml >configs/reproduce/broken.yaml
expect 1 '^broken  claim, NOT SHOWN, ' broken
grep -qE '^  short, seed 7: failed: step [0-9]+: the loss is' <<<"$output" || fail "no reason" "$output"
grep -qE '^  long, seed 8: mirror: .* matches nothing$' <<<"$output" || fail "no word of the path" "$output"
rm configs/reproduce/broken.yaml

# Refused, with nothing written.
before=$(find . -printf '%p %T@\n' | sort)
expect 2 'there is no experiment hold, did you mean holds\?' hold
expect 2 'none: not found; pass --experiments DIR' --experiments none
refuse '/no/where.md: cannot be written' holds --markdown /no/where.md
! grep -q ' runs, ' <<<"$output" || fail "it ran before it looked where results go" "$output"
sed 's/kind: claim/kind: clam/' configs/reproduce/refuted.yaml >configs/reproduce/bad.yaml
expect 2 'bad.yaml:3:7: kind: must be one of golden, control, claim, not clam' bad
rm configs/reproduce/bad.yaml
mkdir other
sed 's/train.steps: 5}/train.steps: 6}/' configs/reproduce/holds.yaml >configs/other.yaml
mv configs/other.yaml other/holds.yaml
sed -i "s|../base.yaml|../configs/base.yaml|" other/holds.yaml
expect 2 'kept/holds: belongs to another sweep' holds --out kept --experiments other

# Interrupted: status 130, nothing left but what --out keeps, and the same command resumes.
sed 's/train.steps: 40}/train.steps: 2000}/' configs/reproduce/holds.yaml >configs/reproduce/long.yaml
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
