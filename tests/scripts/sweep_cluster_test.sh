#!/usr/bin/env bash
# Sweeps by several processes: kills at random moments, ranks of a launcher, halving, --status, and with the add-on
# `cluster` job arrays of a Slurm that is made of three scripts.
# Usage: sweep_cluster_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"
subcommand=(sweep)

short=(train.steps=60 train.schedule.warmup=2 data.validation=50 data.test=50)
# Folders and files of a cluster have names that need quoting, and one that Slurm would expand.
mkdir "it's 100%A"
cd "it's 100%A"
cat >'my sweep.yaml' <<END
config: $configs/reverse.yaml
grid: {model.heads: [1, 2, 4]}
seeds: [7, 8]
END
hashes() { grep -o '"weights_hash": "[0-9a-f]*"' "$1/sweep.json"; }
done_runs() { grep -c '"status": "done"' "$1/sweep.json" || true; }
expect 0 'heads=4 +2/2' 'my sweep.yaml' "${short[@]}" --out whole

# Three sweeps at once: every run is trained once, and each of the sweeps has the whole result.
workers=()
for i in 1 2 3; do
  "$thimble" sweep 'my sweep.yaml' "${short[@]}" --out shared --jobs 1 --json "$i.json" 2>"$i.log" >"$i.table" &
  workers+=($!)
done
for worker in "${workers[@]}"; do wait "$worker" || fail "a sweep beside others failed" "$(cat ./*.log)"; done
[[ $(grep -h ' seed [78]: test loss' ./*.log | sed 's/.*  \(heads=. seed .\):.*/\1/' | sort | uniq -c | grep -c '^ *1 ') == 6 ]] ||
  fail "not every run was trained once" "$(cat ./*.log)"
[[ $(hashes shared) == "$(hashes whole)" ]] || fail "sweeps beside each other change results"
grep -v '"format"' shared/sweep.json >result.json
for i in 1 2 3; do cmp "$i.json" result.json && cmp "$i.table" 1.table; done
[[ -z $(find shared \( -name '*.claim-*' -o -name '*.tmp' -o -name '*.lock' \)) ]] || fail "leftovers" "$(find shared)"

# Sweeps that are killed at random moments lose nothing but the runs they train, which others take over.
RANDOM=5
start_worker() {
  "$thimble" sweep 'my sweep.yaml' "${short[@]}" train.steps=400 --out killed --jobs 1 --quiet 2>>killed.log &
  workers[$1]=$!
}
for i in 0 1 2; do start_worker $i; done
for _ in {1..15}; do
  sleep "0.$((RANDOM % 25 + 10))"
  victim=$((RANDOM % 3))
  kill -9 "${workers[victim]}" 2>/dev/null || true
  wait "${workers[victim]}" 2>/dev/null || true
  start_worker $victim
done
for worker in "${workers[@]}"; do wait "$worker" || fail "after kills a sweep failed" "$(cat killed.log)"; done
expect 0 '6 already finished' 'my sweep.yaml' "${short[@]}" train.steps=400 --out killed
expect 0 'heads=4 +2/2' 'my sweep.yaml' "${short[@]}" train.steps=400 --out unkilled
[[ $(hashes killed) == "$(hashes unkilled)" ]] || fail "kills changed results"

# Ranks of a launcher: rank 0 reports, each trains one run at a time, and the runs are no ranks.
rank() { env OMPI_COMM_WORLD_RANK="$1" OMPI_COMM_WORLD_SIZE=2 PMIX_RANK="$1" "$thimble" sweep "${@:2}"; }
rank 1 'my sweep.yaml' "${short[@]}" --out ranks >rank1 2>&1 &
output=$(rank 0 'my sweep.yaml' "${short[@]}" --out ranks 2>&1) || fail "rank 0 failed" "$output"
wait $! || fail "rank 1 failed" "$(cat rank1)"
grep -q '6 runs, 0 already finished, 1 in parallel' <<<"$output" && grep -qE 'heads=4 +2/2' <<<"$output" ||
  fail "rank 0 does not report" "$output"
[[ ! -s rank1 ]] || fail "rank 1 reports" "$(cat rank1)"
[[ $(hashes ranks) == "$(hashes whole)" ]] || fail "ranks change results"
# A rank that failed first could end rank 0 before it has said why.
rank 1 none.yaml >rank1 2>&1 && [[ ! -s rank1 ]] || fail "rank 1 reports or fails" "$(cat rank1)"

# Halving and random search: the same runs stop for any number of processes; the others end with the weights of thimble
# train, and a stopped one can be resumed by hand.
cat >search.yaml <<END
config: $configs/reverse.yaml
list: [{train.steps: 60, train.evaluate_every: 10}]
random: {samples: 4, seed: 3, model.heads: [1, 2], train.optimizer.lr: {log_uniform: [1e-5, 1e-2]}}
halving: {steps: [10, 30]}
END
expect 0 '^  seed 42: stopped: validation loss [0-9.]+ at step [13]0$' search.yaml data.test=50 --out searched
"$thimble" sweep search.yaml data.test=50 --out searched2 --jobs 1 --quiet &
"$thimble" sweep search.yaml data.test=50 --out searched2 --jobs 1 --quiet
wait $!
outcome() { grep -E '"(status|halving_losses|weights_hash|model.heads|train.optimizer.lr)"|^ {12}[0-9.]+' "$1/sweep.json"; }
cmp <(outcome searched) <(outcome searched2) || fail "halving depends on the processes"
[[ $(done_runs searched) == 1 && $(grep -c '"status": "stopped"' searched/sweep.json) == 3 ]] || fail "not 3 of 4 stopped"
grep -q 'failed": 0' searched/sweep.json || fail "a stopped run counts as failed"
stopped=$(grep -B2 '"status": "stopped"' searched/sweep.json | sed -n '1s/.*"directory": "\(.*\)",/\1/p')
"$thimble" train "$stopped" --resume --quiet
resumed=$(grep -o '"weights_hash": "[0-9a-f]*"' "$stopped/summary.json")
mapfile -t settings < <(awk '/"overrides": \{/ { n++ } n == 1 && /train|model/' searched/sweep.json | tr -d ' ,"' | tr : =)
"$thimble" train "$configs/reverse.yaml" data.test=50 "${settings[@]}" --out by_hand --quiet
[[ $stopped != */001-* || $resumed == "$(grep -o '"weights_hash": "[0-9a-f]*"' by_hand/summary.json)" ]] ||
  fail "a stopped run that was resumed differs from thimble train"

# --stop-after: where halving stops, progress is saved and the exit status is 0; again, nothing is trained.
for _ in 1 2; do
  "$thimble" train "$configs/reverse.yaml" "${short[@]}" --stop-after 20 --resume --out part 2>said || fail "--stop-after" "$(cat said)"
  grep -q 'stopped after step 20; progress saved' said || fail "no word on the stop" "$(cat said)"
done
"$thimble" train part --resume --quiet
"$thimble" train "$configs/reverse.yaml" "${short[@]}" --out at_once --quiet
cmp <(grep -o '"weights_hash": "[0-9a-f]*"' part/summary.json) <(grep -o '"weights_hash": "[0-9a-f]*"' at_once/summary.json)

# Errors of --status.
expect 2 'none: not a sweep directory' --status none
expect 2 'missing SWEEP: give a sweep file, or a sweep directory with --status'
expect 2 'options after -- are for sbatch; add --slurm' 'my sweep.yaml' --out T -- -p short
expect 2 'dry-run requires --slurm|--dry-run' 'my sweep.yaml' --dry-run

# The rest is for a program with the add-on.
without='built without Slurm; build with -DTHIMBLE_CLUSTER=ON, or leave out --slurm'
if [[ $("$thimble" sweep 'my sweep.yaml' --out none --slurm --dry-run 2>&1 || true) == *"$without" ]]; then
  [[ ! -e none ]] || fail "a refused --slurm wrote something"
  echo "sweep_cluster_test: ok, without Slurm"
  exit
fi

# A Slurm of three scripts. sbatch runs the tasks one after the other, each in the folder it is submitted from.
mkdir fake
export SLURM_TEST=$PWD/fake PATH=$PWD/fake:$PATH
cat >fake/sbatch <<'END'
#!/bin/bash
printf '%s\n' "$@" >"$SLURM_TEST/arguments.$(($(cat "$SLURM_TEST/id") + 1))"
[[ ! -e $SLURM_TEST/refuse ]] || { echo "sbatch: error: invalid partition specified: $PART" >&2; exit 1; }
id=$(($(cat "$SLURM_TEST/id") + 1))
echo "$id" | tee "$SLURM_TEST/id"
[[ -e $SLURM_TEST/run ]] || exit 0
for argument; do [[ $argument != --array=1-* ]] || tasks=${argument#--array=1-}; done
for ((i = 1; i <= tasks; i++)); do
  SLURM_JOB_ID=$((id * 100 + i)) SLURM_ARRAY_TASK_ID=$i SLURM_PROCID=0 sh "${@: -1}" >>"$SLURM_TEST/log" 2>&1 || true
done
END
cat >fake/scontrol <<'END'
#!/bin/bash
[[ $1 != requeue ]] || echo "$2" >>"$SLURM_TEST/requeued"
[[ ! -e $SLURM_TEST/down ]] || { printf 'scontrol: error: lookup failed\nscontrol: fatal: no configuration\n'; exit 1; }
echo "MaxArraySize            = $(cat "$SLURM_TEST/max")"
END
printf '#!/bin/bash\ncat "$SLURM_TEST/queue"\n' >fake/squeue
chmod +x fake/*
echo 40 >fake/id
echo 1001 >fake/max
: >fake/queue
submit() { expect "$1" "$2" 'my sweep.yaml' "${short[@]}" --out "S's" --slurm "${@:3}"; }

# The dry run writes nothing; its script is one of a shell.
before=$(find . | sort)
submit 0 '^# sbatch --parsable .*--array=1-6 .*--signal=B:USR1@60 -p short .*slurm.sh' --dry-run -- -p short
sh -n <<<"$output" || fail "the script is not one of sh" "$output"
[[ $before == "$(find . | sort)" ]] || fail "a dry run wrote something"
grep -qF -- "/it'\''s 100%A'" <<<"$output" || fail "the folder is not quoted" "$output"

# No Slurm: nothing is written.
touch fake/down
before=$(find . | sort)
submit 2 "scontrol failed: scontrol: error: lookup failed scontrol: fatal: no configuration; submit on a machine"
[[ $before == "$(find . | sort)" ]] || fail "something was written without Slurm"
rm fake/down

# Refused by sbatch: its message, and nothing in the queue.
touch fake/refuse
submit 2 "sbatch failed: sbatch: error: invalid partition specified"
rm fake/refuse

# Submitted, and not started yet: the states, no second submission, and nothing is trained here.
submit 0 '^Slurm job 41: 6 tasks$' -- --time=1:00 '--comment=a b'
grep -qx -- '--comment=a b' fake/arguments.41 && grep -qx -- '--array=1-6' fake/arguments.41 || fail "sbatch" "$(cat fake/arguments.41)"
grep -qxF -- "--output=$PWD/S's/slurm-%A_%a.log" <(sed 's/%%/%/' fake/arguments.41) || fail "no output" "$(cat fake/arguments.41)"
printf 'PENDING\nPENDING\nRUNNING\n' >fake/queue
expect 0 "^S's: 6 runs: 6 waiting$" --status "S's"
grep -qx 'Slurm: 2 pending, 1 running' <<<"$output" || fail "no state of Slurm" "$output"
submit 2 'its Slurm jobs have not ended: 2 pending, 1 running; .*scancel 41'
expect 1 "trained by Slurm \(2 pending, 1 running\), so no run was started here" 'my sweep.yaml' "${short[@]}" --out "S's"
[[ -z $(find "S's/runs" -type f) ]] || fail "a run was started beside Slurm" "$(find "S's")"

# No array is larger than Slurm permits: 6 runs in 3 tasks of 2. The tasks train them all, and the sweep collects.
: >fake/queue
touch fake/run
echo 5 >fake/max
submit 0 '^Slurm job 42: 3 tasks$'
expect 0 "^S's: 6 runs: 6 done$" --status "S's" --json status.json
grep -q '"done": 6' status.json || fail "no counts" "$(cat status.json)"
expect 0 '6 already finished' 'my sweep.yaml' "${short[@]}" --out "S's"
[[ $(hashes "S's") == "$(hashes whole)" ]] || fail "Slurm changes results"
submit 0 '^no run is missing$'

# Only what is missing is submitted again.
rm -r "S's/runs/"00[25]*
submit 0 '^Slurm job 43: 2 tasks$'
[[ $(hashes "S's") == "$(hashes whole)" ]] || fail "submitting again changes results"

# With halving: an array for each step, which starts after the one before.
rm fake/log
expect 0 '^Slurm job 46: 1 task$' search.yaml data.test=50 --out H --slurm
grep -qx -- '--array=1-4' fake/arguments.44 && grep -qx -- '--dependency=afterany:44' fake/arguments.45 || fail "arrays" "$output"
cmp <(outcome searched) <(outcome H) || fail "halving by Slurm differs" "$(cat fake/log)"

# A task that gets USR1 saves its run and is queued again; TERM as Slurm sends it, to every process, saves too.
rm fake/run
echo 1001 >fake/max
for signal in USR1 TERM; do
  rm -rf L
  expect 0 'Slurm job' 'my sweep.yaml' "${short[@]}" train.steps=1000000 --out L --slurm
  SLURM_JOB_ID=977 setsid sh L/slurm.sh >task.log 2>&1 &
  task=$!
  until compgen -G 'L/runs/*/metrics.jsonl' >/dev/null && [[ -s $(echo L/runs/*/metrics.jsonl) ]]; do sleep 0.02; done
  expect 0 '^heads=1 seed 7: running, step [0-9]+, process [0-9]+ on ' --status L
  if [[ $signal == USR1 ]]; then
    kill -USR1 $task
  else
    read -r sweep </proc/$task/task/$task/children || true
    read -r child </proc/$sweep/task/$sweep/children || true
    kill -STOP $child  # so that it saves after both signals have come
    kill -TERM $task $sweep $child
    until grep -q 'interrupted: waiting for' task.log; do sleep 0.02; done
    sleep 1
    kill -CONT $child || fail "TERM: the run was killed" "$(cat task.log)"
  fi
  status=0
  wait $task || status=$?
  expect 0 '^heads=1 seed 7: interrupted, step [1-9]' --status L
  [[ $(grep -c 'interrupted: waiting for' task.log) == 1 ]] || fail "$signal: not one interruption" "$(cat task.log)"
  compgen -G 'L/runs/001*/checkpoints/step-*' >/dev/null || fail "$signal: nothing was saved" "$(cat task.log)"
  if [[ $signal == USR1 ]]; then
    ((status == 0)) && [[ $(cat fake/requeued) == 977 ]] || fail "USR1: status $status, not queued again" "$(cat task.log)"
  else
    ((status == 130)) && [[ $(cat fake/requeued) == 977 ]] || fail "TERM: status $status" "$(cat task.log)"
  fi
done

echo "sweep_cluster_test: ok"
