#!/usr/bin/env bash
# Sweeps: the table and sweep.json, resuming, failures, signals.
# Usage: sweep_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"
subcommand=(sweep)

# Prints files and their times.
state() { find . -printf '%p %T@\n' | sort; }
hashes() { grep -o '"weights_hash": "[0-9a-f]*"' "$1/sweep.json"; }

short=(train.steps=6 train.schedule.warmup=2 data.validation=50 data.test=50)
cat >s.yaml <<END
config: $configs/reverse.yaml
grid: {model.heads: [1, 2, 4], model.layers: [1]}
seeds: [7, 8]
END

# Six runs: a table of 80 columns, a line for each run, and the same result in two files.
expect 0 '^heads=4 +2/2( +[0-9.]+){6}$' s.yaml "${short[@]}" --out s --json copy.json
grep -qE '^ +\+-( +[0-9.]+){6}$' <<<"$output" || fail "no standard deviations" "$output"
grep -qE '^6/6  heads=[124] seed [78]: test loss [0-9.]+, tokens [0-9.]+ %' <<<"$output" || fail "no progress" "$output"
! grep -E '^(setting|heads| +\+-)' <<<"$output" | grep -qE '.{81}' || fail "the table is wider than 80 columns" "$output"
diff <(grep -v '"format": "thimble sweep 3"' s/sweep.json) copy.json
[[ $(grep -c '"status": "done"' s/sweep.json) == 6 ]] || fail "not six runs done" "$(cat s/sweep.json)"
[[ $(hashes s | sort -u | wc -l) == 6 ]] || fail "not six different results" "$(hashes s)"
for file in config.yaml metrics.jsonl summary.json; do
  [[ $(find s/runs -name "$file" | wc -l) == 6 ]] || fail "not six $file"
done

# Again: nothing is trained, and the table is the same.
before=$(find s/runs -type f -printf '%p %T@\n' | sort)
expect 0 '6 already finished' s.yaml "${short[@]}" --out s
[[ $before == "$(find s/runs -type f -printf '%p %T@\n' | sort)" ]] || fail "a second sweep wrote into its runs"
grep -qE '^heads=4 +2/2' <<<"$output" || fail "no table the second time" "$output"

# The numbers do not depend on the jobs, and are those of thimble train.
expect 0 'heads=4' s.yaml "${short[@]}" --out one --jobs 1
expect 0 'heads=4' s.yaml "${short[@]}" --out three --jobs 3
[[ $(hashes one) == "$(hashes s)" && $(hashes three) == "$(hashes s)" ]] || fail "results depend on --jobs"
"$thimble" train "$configs/reverse.yaml" "${short[@]}" model.heads=4 train.seed=8 --out alone --quiet
[[ $(hashes s | tail -n 1) == "$(grep -o '"weights_hash": "[0-9a-f]*"' alone/summary.json)" ]] ||
  fail "a run differs from thimble train"

# Without --out the sweep finds its directory again; one seed has no deviation; only JSON with --quiet.
sed 's/seeds:.*/seeds: [7]/' s.yaml >t.yaml
expect 0 '^sweep runs/sweep-t-[0-9a-f]{8}$' t.yaml "${short[@]}"
! grep -qF -- '+-' <<<"$output" || fail "a deviation of one seed" "$output"
expect 0 '3 already finished' t.yaml "${short[@]}"
expect 0 '^\{$' t.yaml "${short[@]}" --json - --quiet
[[ $output == "{"*"}" ]] || fail "standard output is not JSON alone" "$output"

# A run that fails: status 1, the reason in table and file, and all others done.
cat >fails.yaml <<END
config: $configs/reverse.yaml
list:
  - {model.heads: 2}
  - {train.optimizer.name: sgd, train.optimizer.lr: 100, train.optimizer.momentum: 0.99, train.clip_norm: 0,
     model.norm: pre, model.layers: 4, model.positions: none}
  - {model.heads: 4}
END
expect 1 '^  seed 42: failed: step [0-9]+: the loss is' fails.yaml "${short[@]}" train.steps=20 \
  train.schedule.warmup=5 --out fails
[[ $(grep -c '^heads=[24] .* 1/1 ' <<<"$output") == 2 ]] || fail "others are not done" "$output"
! grep -vE '^([0-9]+/|fails: )' <<<"$output" | grep -qE '.{81}' || fail "a table is wider than 80 columns" "$output"
grep -qE '"error": "step [0-9]+: the loss is .*train.clip_norm"' fails/sweep.json || fail "no reason in sweep.json"
grep -qE '"failed": 1$' fails/sweep.json || fail "not one failure in sweep.json"

# Quiet or not, only the first line of each error is on standard error.
expect 1 '^thimble: .*layers=4 .*seed 42: failed: step [0-9]+: the loss is ' fails.yaml "${short[@]}" train.steps=20 \
  train.schedule.warmup=5 --out fails_quietly --quiet
[[ $(wc -l <<<"$output") == 1 ]] || fail "sweep --quiet says more than what failed" "$output"
printf 'config: %s\nlist: [{model.d_model: 8192, model.d_ff: 65536, model.layers: 128, train.shards: 100}]\n' \
  "$configs/reverse.yaml" >huge.yaml
expect 1 '^thimble: .*seed 42: failed: this config needs about [0-9.]+ [TP]iB of memory' huge.yaml --out huge --quiet

# Refused, with nothing written: another sweep's directory, a bad sweep, bad arguments.
before=$(state)
expect 2 'one: belongs to another sweep: its setting 1 is .* seeds \[7,8\] .*, here .* seeds \[7\]' \
  t.yaml "${short[@]}" --out one
expect 2 'one: belongs to another sweep: its setting 1 is .* a config of hash [0-9a-f]+, here .* a config of hash [0-9a-f]+;' s.yaml "${short[@]}" \
  train.steps=7 --out one
expect 2 'alone: exists and is not the directory of this sweep' s.yaml "${short[@]}" --out alone
printf 'config: %s\nsead: [1]\ngrid: {model.heads: [3, 1]}\n' "$configs/reverse.yaml" >"$work.yaml"
trap 'rm -rf "$work" "$work.yaml"' EXIT
expect 2 '2 problems' "$work.yaml" --out bad
for line in ':2:1: sead: unknown key, did you mean seeds\?' ':3:22: model.heads: heads \(3\)'; do
  grep -qE "$line" <<<"$output" || fail "no $line" "$output"
done
[[ $before == "$(state)" ]] || fail "a refused sweep wrote something" "$(state)"

# A run that was trained further by hand stops nothing, and is marked; a lost sweep.json is made again.
"$thimble" train one/runs/001-*/ --resume train.steps=8 --quiet
head -c 1000 one/sweep.json >cut && mv cut one/sweep.json
for command in sweep\ --status compare; do
  output=$("$thimble" $command one 2>&1) && fail "$command of a sweep.json that was cut" "$output"
  grep -qE '; the command of the sweep writes it again: thimble sweep FILE --out one$' <<<"$output" || fail "no remedy" "$output"
done
expect 0 '^thimble: one/runs/001-[^:]*: was trained further, to step 8, after the sweep had ended it$' s.yaml "${short[@]}" --out one
expect 0 'was trained further, to step 8' --status one
[[ -s one/sweep.json ]] || fail "no sweep.json"

# start ARGUMENT...: a sweep in the background, with its process in $sweep and its first run, held, in $child.
start() {
  "$thimble" sweep "$@" </dev/null >log 2>&1 &
  sweep=$!
  child=
  until [[ -n $child ]] && kill -STOP "$child" 2>/dev/null; do
    kill -0 "$sweep" 2>/dev/null || fail "the sweep ended" "$(cat log)"
    read -r child _ <"/proc/$sweep/task/$sweep/children" || true
    sleep 0.02
  done
}

# Interrupted: status 130 after its runs have ended, and the same command resumes.
start s.yaml "${short[@]}" train.steps=100 --jobs 1 --out stopped
kill -INT "$sweep"
until grep -q 'interrupt again to stop at once' log; do sleep 0.02; done
kill -CONT "$child" 2>/dev/null || true  # it has ended if there was nothing to save
status=0
wait "$sweep" || status=$?
((status == 130)) || fail "an interrupted sweep has exit status $status" "$(cat log)"
grep -q 'resume with the same command and --out stopped' log || fail "no word on how to resume" "$(cat log)"
expect 0 'heads=4 +2/2' s.yaml "${short[@]}" train.steps=100 --out stopped
expect 0 'heads=4 +2/2' s.yaml "${short[@]}" train.steps=100 --out whole
[[ $(hashes stopped) == "$(hashes whole)" ]] || fail "an interruption changed results"

# Interrupted twice, its runs end at once; killed, they end too.
start s.yaml "${short[@]}" train.steps=1000000 --jobs 1 --out twice
kill -TERM "$sweep"
until grep -q 'interrupt again to stop at once' log; do sleep 0.02; done
kill -TERM "$sweep" 2>/dev/null || true
status=0
wait "$sweep" || status=$?
((status == 130)) || fail "a sweep interrupted twice has exit status $status" "$(cat log)"
! kill -0 "$child" 2>/dev/null || fail "a run goes on after a second signal"
start s.yaml "${short[@]}" train.steps=1000000 --jobs 1 --out killed
kill -KILL "$sweep"
kill -CONT "$child" 2>/dev/null || true
wait "$sweep" 2>/dev/null || true
while kill -0 "$child" 2>/dev/null; do sleep 0.02; done
echo "sweep_test: ok"
