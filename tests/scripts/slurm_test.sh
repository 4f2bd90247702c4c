#!/usr/bin/env bash
# A sweep by a real Slurm, which this starts with a configuration of its own and stops at the end: one task is killed,
# one preempted and queued again, and the table must be that of a local sweep. Also ranks of Open MPI and MPICH, of which
# one is killed. Skipped without root, munge, slurmctld and slurmd (scripts/setup.sh cluster).
# Usage: slurm_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
for program in munged slurmctld slurmd sbatch squeue; do
  PATH=$PATH:/usr/sbin command -v $program >/dev/null ||
    { echo "slurm_test: skipped: $program is missing; install it with scripts/setup.sh cluster"; exit 77; }
done
((EUID == 0)) || { echo "slurm_test: skipped: Slurm needs root"; exit 77; }
[[ $("$1" sweep "$2/configs/sweeps/heads.yaml" --slurm --dry-run 2>&1 || true) != *'built without Slurm'* ]] || {
  echo "slurm_test: skipped: $1 was built without Slurm; configure and build preset mpi"
  exit 77
}
source "$(dirname "$0")/expect.sh" "$@"
subcommand=(sweep)
PATH=$PATH:/usr/sbin

stop_slurm() {
  [[ ! -e $work/slurm.conf ]] || scancel --user root 2>/dev/null || true
  for daemon in slurmd slurmctld munged; do
    [[ ! -s $work/$daemon.pid ]] || kill "$(cat "$work/$daemon.pid")" 2>/dev/null || true
  done
  for _ in {1..50}; do
    local left=
    for daemon in slurmd slurmctld munged; do
      [[ ! -s $work/$daemon.pid ]] || ! kill -0 "$(cat "$work/$daemon.pid")" 2>/dev/null || left=1
    done
    [[ -n $left ]] || break
    sleep 0.1
  done
  rm -rf "$work"
}
trap stop_slurm EXIT

wait_for() {  # SECONDS COMMAND...: until the command succeeds
  local end=$((SECONDS + $1))
  until "${@:2}" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "no success in $1 s: ${*:2}" "$(squeue 2>&1)" "$(tail -n 30 "$work"/slurmctld.log 2>&1)"
    sleep 0.2
  done
}

# Waits until no job is left; those that were queued again start at once instead of after two minutes.
finish_jobs() {
  local job
  for _ in {1..300}; do
    [[ -n $(squeue --noheader) ]] || return 0
    for job in $(squeue --noheader --array --states=PENDING --format='%i %r' | sed -n 's/ BeginTime//p'); do
      scontrol update JobId="$job" StartTime=now || true
    done
    sleep 0.5
  done
  fail "jobs are left" "$(squeue)"
}

# One node with 4 CPUs, whatever the machine has; partition `high` preempts `low`, whose jobs are queued again.
chmod 755 "$work"
host=$(hostname -s)
port=$((20000 + RANDOM % 20000))
head -c 128 /dev/urandom >munge.key
chmod 600 munge.key
mkdir state spool
cat >slurm.conf <<END
ClusterName=thimble
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CryptoType=crypto/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=2,requeue_delay=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
MaxArraySize=100
KillWait=10
ReturnToService=2
MpiDefault=none
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=low Nodes=$host Default=YES MaxTime=10 PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=high Nodes=$host MaxTime=10 PriorityTier=9 PreemptMode=OFF State=UP
END
export SLURM_CONF=$work/slurm.conf
munged --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" \
  --log-file="$work/munged.log" --seed-file="$work/munge.seed" --force
slurmctld
slurmd -N "$host"
wait_for 30 sinfo --noheader --state=idle --format=%n

cat >s.yaml <<END
config: $configs/reverse.yaml
grid: {model.heads: [1, 2, 4], train.optimizer.lr: [5e-4, 1e-3]}
seeds: [7, 8]
END
changes=(train.steps=1500 train.schedule.warmup=2 train.checkpoint_every=100 data.validation=50 data.test=50)
hashes() { grep -o '"weights_hash": "[0-9a-f]*"' "$1/sweep.json"; }
table() { "$thimble" sweep s.yaml "${changes[@]}" --out "$1" 2>/dev/null | sed 's/ *[0-9.]*$//' | grep -v '^sweep'; }

expect 0 '^Slurm job [0-9]+: 12 tasks$' s.yaml "${changes[@]}" --out S --slurm -- --partition=low --time=5
training() { [[ -s $(echo "S/runs/$1"*/metrics.jsonl) ]]; }
wait_for 60 training 001
wait_for 60 training 002
expect 0 'running, step [0-9]+, process [0-9]+ on ' --status S
echo "slurm_test: while it runs: $(head -n 1 <<<"$output"); $(tail -n 1 <<<"$output")"

# One task is killed, with its runs: Slurm ends it as failed, and its run is missing.
victim=$(sed -n 's/.*running, step [0-9]*, process \([0-9]*\) on .*/\1/p' <<<"$output" | head -n 1)
kill -9 "$(awk '/^PPid/ { print $2 }' "/proc/$victim/status")" "$victim"
# A job of partition `high` needs all CPUs: what runs is preempted and queued again.
sbatch --partition=high --cpus-per-task=4 --output=/dev/null --wrap='sleep 1' >/dev/null
wait_for 60 grep -q Requeuing slurmctld.log
finish_jobs
expect 0 '^S: 12 runs: ' --status S
echo "slurm_test: after one kill and $(grep -c Requeuing slurmctld.log) preempted tasks: $(head -n 1 <<<"$output")"

# What is missing is submitted again, and the table is that of a local sweep.
expect 0 '^Slurm job [0-9]+: [1-9][0-9]* tasks?$|^no run is missing$' s.yaml "${changes[@]}" --out S --slurm
echo "slurm_test: submitted again: $(head -n 1 <<<"$output")"
finish_jobs
expect 0 '^S: 12 runs: 12 done$' --status S
expect 0 '12 already finished' s.yaml "${changes[@]}" --out S
"$thimble" sweep s.yaml "${changes[@]}" --out local --quiet
[[ $(hashes S) == "$(hashes local)" ]] || fail "weights differ from those of a local sweep"
cmp <(table S) <(table local) || fail "the table differs from that of a local sweep"
table S

# USR1, as before the time limit: the task saves, is queued again, and ends with the same weights.
expect 0 '^Slurm job [0-9]+: 12 tasks$' s.yaml "${changes[@]}" --out U --slurm -- --signal=B:USR1@30 --time=5
job=$(sed -n 's/^Slurm job \([0-9]*\):.*/\1/p' <<<"$output")
training() { [[ -s $(echo "U/runs/$1"*/metrics.jsonl) ]]; }
wait_for 60 training 001
timeout 3 scancel --batch --signal=USR1 "${job}_1" || true  # tries again while the job is queued
queued_again() { squeue --noheader --array --format='%i %r' | grep -q "^${job}_1 BeginTime"; }
wait_for 30 queued_again
compgen -G 'U/runs/*/checkpoints/step-*' >/dev/null || fail "USR1: nothing was saved" "$(cat U/slurm-*_1.log)"
finish_jobs
expect 0 '^U: 12 runs: 12 done$' --status U
cmp <(hashes U) <(hashes local) || fail "USR1 changes results"

# srun, and mpirun of Open MPI and of MPICH: the table of a local sweep. One rank is killed, and the sweep resumed.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
srun --ntasks=4 "$thimble" sweep s.yaml "${changes[@]}" --out srun --quiet || fail "srun"
"$thimble" sweep s.yaml "${changes[@]}" --out srun --quiet
cmp <(hashes srun) <(hashes local) || fail "srun changes results"
# Ranks of one training, if the program is built with MPI; otherwise it must not train copies.
one=("$configs/reverse.yaml" train.steps=40 train.schedule.warmup=5 train.evaluate_every=20 data.validation=50 data.test=50)
weights() { sed -n 's/.*"weights_hash": "\([0-9a-f]*\)".*/\1/p' "$1/summary.json"; }
"$thimble" train "${one[@]}" --out one --quiet || (($? == 1))
status=0
srun --mpi=pmix --ntasks=3 "$thimble" train "${one[@]}" --out pmix --quiet 2>said || status=$?
if ((status <= 1)); then
  [[ -n $(weights one) && $(weights pmix) == "$(weights one)" ]] || fail "srun --mpi=pmix: $(weights pmix), not $(weights one)"
  grep -q '"ranks": 3' pmix/summary.json || fail "srun --mpi=pmix: not 3 ranks" "$(cat pmix/summary.json)"
  echo "slurm_test: srun --mpi=pmix: 3 ranks train to the weights of one process"
else
  [[ $status == 2 && ! -e pmix ]] && grep -q 'built without MPI' said || fail "srun --mpi=pmix" "$(cat said)"
  echo "slurm_test: srun --mpi=pmix: refused, as the program is built without MPI"
fi

ranks=0
launch() {  # NAME COMMAND...
  command -v "$2" >/dev/null || { echo "slurm_test: without $2, which is missing"; return 0; }
  local name=$1 killed=0 launcher
  shift
  "$@" "$thimble" sweep s.yaml "${changes[@]}" --out "$name" >"$name.log" 2>&1 &
  launcher=$!
  wait_for 60 eval "[[ -s \$(echo $name/runs/002*/metrics.jsonl) ]]"
  "$thimble" sweep --status "$name" >status
  killed=$(sed -n 's/.*running, .*process \([0-9]*\) on .*/\1/p' status | tail -n 1)
  kill -9 "$killed"
  status=0
  wait $launcher || status=$?
  echo "slurm_test: $name: rank killed, status $status, $("$thimble" sweep --status "$name" | head -n 1)"
  if [[ $name == recovery ]]; then
    grep -q '12 done$' < <("$thimble" sweep --status "$name") || fail "$name: ranks did not go on" "$(cat "$name.log")"
  else
    ((status != 0)) || fail "$name: a killed rank is no error" "$(cat "$name.log")"
    "$@" "$thimble" sweep s.yaml "${changes[@]}" --out "$name" >"$name.log" 2>&1 || fail "$name: not resumed" "$(cat "$name.log")"
  fi
  cmp <(hashes "$name") <(hashes local) || fail "$name changes results"
  ranks=$((ranks + 1))
}
launch openmpi mpirun.openmpi --oversubscribe -n 3
launch recovery mpirun.openmpi --oversubscribe --enable-recovery -n 3
launch mpich mpiexec.mpich -n 3
echo "slurm_test: ok, $ranks of 3 launchers"
