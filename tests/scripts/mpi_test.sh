#!/usr/bin/env bash
# Training with several processes: every config gives the weights of one process for any number of ranks and threads, and
# runs that are killed, interrupted or run out of disk end within seconds and resume with another number of ranks.
# Usage: mpi_test.sh SOURCE_DIR [PROGRAM LAUNCHER]...
#   PROGRAM LAUNCHER: a program that is built with MPI, and the mpirun of that MPI; none: the test is skipped
#   $STEPS, $KILLS: steps of the hash table (default 10), kills (default 10) for each MPI
#   $CONFIGS, $TABLE: configs of the hash table, and a file to write it to
set -euo pipefail
source=$(realpath "$1")
shift
if (($# == 0)); then
  echo "mpi_test: skipped: thimble is built without MPI; scripts/setup.sh mpi, cmake --preset mpi" >&2
  exit 77
fi
steps=${STEPS:-10} kills=${KILLS:-10} table=${TABLE:-/dev/null}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE SLURM_STEP_NUM_TASKS PMIX_RANK

fail() {
  echo "mpi_test: $launcher: $1" >&2
  [[ ! -s said ]] || sed 's/^/  /' said >&2
  exit 1
}

# launch RANKS ARGUMENT...: runs the program on that many ranks; more than there are cores may share them.
launch() {
  local options=(-n "$1")
  [[ $("$launcher" --version) != *Open* ]] || options+=(--oversubscribe --bind-to none)
  "$launcher" "${options[@]}" "$program" "${@:2}"
}
hash_of() { sed -n 's/.*"weights_hash": "\([0-9a-f]*\)".*/\1/p' "$1/summary.json"; }
timeless() { sed 's/,"seconds":[^,]*}$/}/' "$1/metrics.jsonl"; }
processes() { pgrep -f -- "$program train" || true; }
# ended_within SECONDS WHAT: requires that the ranks of the job in the background end in time; sets `status`.
ended_within() {
  local left=$((10 * $1))
  while kill -0 $job 2>/dev/null && ((left-- > 0)); do sleep 0.1; done
  if kill -0 $job 2>/dev/null; then
    # Open MPI's mpirun may hang for ever when a rank is killed while it connects to mpirun.
    [[ -z $(processes) ]] || fail "$2: still running after $1 s"
    kill -9 "$(pgrep -P $job)"
    hung=$((hung + 1))
  fi
  status=0
  wait $job || status=$?
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    [[ -n $(processes) ]] || return 0
    sleep 0.2
  done
  fail "$2: processes are left: $(processes)"
}
messages() { grep -c '^thimble: ' said || true; }

# The weights of one process, to compare with.
short=("train.schedule.warmup=$((steps / 10))" "train.steps=$steps" "train.evaluate_every=$steps" train.checkpoint_every=0 train.shards=8
  data.validation=40 data.test=8)
read -ra configs <<<"${CONFIGS:-reverse translation translation_recurrent bench/tiny bench/base}"

table() {
  local config ranks threads alone
  for config in "${configs[@]}"; do
    "$program" train "$source/configs/$config.yaml" "${short[@]}" --out one --quiet 2>said || (($? == 1)) || fail "$config"
    alone=$(hash_of one)
    for ranks in 1 2 3 4 7; do
      for threads in 1 2; do
        launch $ranks train "$source/configs/$config.yaml" "${short[@]}" --threads $threads --out several --quiet \
          2>said || (($? == 1)) || fail "$config, $ranks ranks"
        [[ $(hash_of several) == "$alone" ]] ||
          fail "$config, $ranks ranks, $threads threads: weights $(hash_of several), not $alone"
        cmp -s <(timeless one) <(timeless several) || fail "$config, $ranks ranks, $threads threads: other metrics"
        printf '%-28s %-16s %s ranks %s threads %s\n' "$config" "$launcher" $ranks $threads "$alone" >>"$table"
        rm -r several
      done
    done
    rm -r one
  done
}

config=("$source/configs/reverse.yaml" train.steps=300 train.batch=32 train.shards=7 data.train=5000 data.validation=100
  data.test=100 train.evaluate_every=20 train.checkpoint_every=12 train.log_heads=true --threads 1)

same_as_whole() {  # RUN WHAT
  [[ $(hash_of "$1") == $(hash_of whole) ]] || fail "$2: other weights"
  cmp -s <(timeless "$1") <(timeless whole) || fail "$2: other metrics"
}

# Kills a random rank, or the launcher, at a random time; each time another number of ranks resumes.
killed() {
  local number=0 ranks victims victim
  rm -rf run
  while ((number < kills)); do
    ranks=$((RANDOM % 4 + 2))
    launch $ranks train "${config[@]}" --out run --resume --quiet >/dev/null 2>said &
    job=$!
    sleep "0.$((RANDOM % 9))$((RANDOM % 10))"
    mapfile -t victims < <(processes)
    if ((${#victims[@]} > 0)); then
      victim=${victims[RANDOM % ${#victims[@]}]}
      ! kill -9 "$victim" 2>/dev/null || number=$((number + 1))
    fi
    ended_within 20 "kill $number"
    if [[ -e run/summary.json ]] || ((number == kills)); then
      launch $((RANDOM % 4 + 1)) train "${config[@]}" --out run --resume --quiet 2>said || fail "resuming"
      same_as_whole run "kill $number"
      [[ -z $(find run -name '*.tmp') ]] || fail "leftovers: $(ls -aR run)"
      ((number == kills)) || rm -rf run
    fi
  done
}

started() {  # STEP: waits until the run has come to that step
  until grep -q "\"step\":$1," run/metrics.jsonl 2>/dev/null; do
    kill -0 $job 2>/dev/null || fail "ended before step $1"
    sleep 0.05
  done
}

# SIGTERM to one rank: all stop after the same step, and rank 0 saves it.
interrupted() {
  local steps
  rm -rf run
  launch 3 train "${config[@]}" train.steps=600000 --out run 2>said >/dev/null &
  job=$!
  started 40
  kill -TERM "$(processes | tail -n 1)"
  ended_within 20 "SIGTERM to a rank"
  ((status == 130)) || fail "SIGTERM to a rank: exit status $status"
  steps=$(sed -n 's/.*stopped after step \([0-9]*\);.*/\1/p' said)
  [[ -f run/checkpoints/step-$steps.safetensors ]] || fail "SIGTERM to a rank: step ${steps:-?} is not saved"
  (($(messages) == 1)) || fail "SIGTERM to a rank: $(messages) messages"

  rm -rf run
  launch 3 train "${config[@]}" train.steps=600000 --out run --quiet 2>said >/dev/null &
  job=$!
  started 40
  kill -TERM "$(pgrep -P $job)"
  ended_within 20 "SIGTERM to the launcher"
}

# Errors of one rank or of all: one message, the exit status of one process.
errors() {
  status=0
  launch 3 train "${config[@]}" train.optimizer.name=sgd train.optimizer.lr=100 train.optimizer.momentum=0.99 \
    train.clip_norm=0 model.norm=pre model.layers=4 model.positions=none --out numeric --quiet 2>said >/dev/null ||
    status=$?
  ((status == 3)) || fail "not finite: exit status $status"
  (($(messages) == 1)) || fail "not finite: $(messages) messages"
  status=0
  launch 8 train "${config[@]}" --out many --quiet 2>said >/dev/null || status=$?
  ((status == 2)) && grep -q 'train.shards is 7, but 8 processes' said || fail "more ranks than shards: $status"
  (($(messages) == 1)) || fail "more ranks than shards: $(messages) messages"
  [[ ! -e many ]] || fail "more ranks than shards: something was written"

  # Ranks with another config. An environment variable is the rank in both launchers.
  cat >differing.sh <<'END'
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
exec "$@" train.seed=$((rank == 1 ? 7 : 8))
END
  status=0
  program_before=$program program=bash
  launch 3 differing.sh "$program_before" train "${config[@]}" --out differ --quiet 2>said >/dev/null || status=$?
  program=$program_before
  ((status == 2)) && grep -q 'hash of the config: rank 0 has .*rank 1 differs' said || fail "differing configs: $status"
  (($(messages) == 1)) || fail "differing configs: $(messages) messages"

  # Ranks with another option, which is named with both values.
  cat >option.sh <<'END'
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
option=()
((rank != 1)) || read -ra option <<<"$OPTION"
exec "$@" "${option[@]}"
END
  for option in "--stop-after 5" --resume "--out other" "--json other"; do
    status=0 program=bash
    OPTION=$option launch 3 option.sh "$program_before" train "${config[@]}" --quiet 2>said >/dev/null || status=$?
    program=$program_before
    ((status == 2)) && grep -q "^thimble: ${option% *}: rank 0 has .*, rank 1 has .*; rank 1 differs" said ||
      fail "ranks that differ in $option: exit status $status"
    (($(messages) == 1)) || fail "ranks that differ in $option: $(messages) messages"
    [[ ! -e runs && ! -e other ]] || fail "ranks that differ in $option: something was written"
  done

  if mkdir -p small && mount -t tmpfs -o size=420k tmpfs small 2>/dev/null; then
    status=0
    launch 3 train "${config[@]}" --out small/run --quiet 2>said >/dev/null || status=$?
    ((status == 2)) && grep -q 'No space left on device' said || fail "full disk: exit status $status"
    (($(messages) == 1)) || fail "full disk: $(messages) messages"
    mount -o remount,size=8m small
    launch 2 train "${config[@]}" --out small/run --resume --quiet 2>said || fail "full disk, resuming"
    same_as_whole small/run "full disk"
    umount small
  fi

  # A rank that ends before MPI starts, of which MPICH's launcher now and then reports another status.
  cat >ends.sh <<'END'
status=0
bash option.sh "$@" || status=$?
echo $status >"ended.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
exit $status
END
  status=0 program=bash
  OPTION=--unknown THIMBLE_RANK_TIMEOUT=5 launch 2 ends.sh "$program_before" train "${config[@]}" --quiet 2>said \
    >/dev/null || status=$?
  program=$program_before
  ((status != 0)) && [[ $(cat ended.1) == 2 ]] && grep -q 'unknown option --unknown' said ||
    fail "an unknown option on a rank: exit status $status, of the rank $(cat ended.1)"
  ((status == 2)) || [[ $("$launcher" --version) != *Open* ]] || fail "an unknown option on a rank: exit status $status"

  # A rank that crashes, as MPI libraries do without memory, ends the others.
  rm -rf run
  launch 2 train "${config[@]}" train.steps=600000 --out run --quiet >/dev/null 2>said &
  job=$!
  started 40
  kill -SEGV "$(processes | tail -n 1)"
  ended_within 30 "a rank that crashes"
  ((status != 0)) || fail "a rank that crashes: exit status 0"

  # A rank that hangs is named, alone or beside those that wait for it.
  rm -rf run
  THIMBLE_RANK_TIMEOUT=2 launch 3 train "${config[@]}" train.steps=600000 --out run --quiet >/dev/null 2>said &
  job=$!
  started 40
  stopped=$(processes | tail -n 1)
  rank=$(tr '\0' '\n' <"/proc/$stopped/environ" | sed -nE 's/^(OMPI_COMM_WORLD_RANK|PMI_RANK)=//p')
  kill -STOP "$stopped"
  ended_within 30 "a rank that hangs"
  ((status != 0)) || fail "a rank that hangs: exit status 0"
  grep -qE "no answer from ranks? ([0-9], )?$rank(, [0-9])? for 2 s" said || fail "rank $rank hangs and is not named"
}

# Programs without MPI, or started by the launcher of another MPI.
launchers() {
  status=0
  OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3 "$program" train "${config[@]}" --out wrong 2>said >/dev/null || status=$?
  ((status == 2)) && grep -q 'started as 3 processes, but ' said || fail "another launcher: exit status $status"
  [[ ! -e wrong ]] || fail "another launcher: something was written"
  launch 2 bench "$source/configs/bench/micro.yaml" --steps 20 --json bench.json >/dev/null 2>said || fail "bench"
  grep -q '"ranks": 2' bench.json && grep -q '"bytes_sent_per_step"' bench.json || fail "bench: $(cat bench.json)"
}

# The commands that docs/cluster.md shows.
documented() {
  local ranks arguments shown=0
  ln -sfn "$source/configs" configs
  while read -r ranks arguments; do
    # shellcheck disable=SC2086
    launch "$ranks" $arguments </dev/null >said 2>&1 || fail "docs/cluster.md: thimble $arguments"
    shown=$((shown + 1))
  done < <(sed -n 's/^mpirun -n \([0-9]*\) build\/mpi\/thimble \(.*\)/\1 \2/p' "$source/docs/cluster.md")
  ((shown > 0)) || fail "docs/cluster.md shows no mpirun"
  rm -rf runs
}

while (($# > 0)); do
  program=$(realpath "$1") launcher=$2
  shift 2
  hung=0
  table
  "$program" train "${config[@]}" --out whole --quiet 2>said || fail "one process"
  errors
  interrupted
  killed
  launchers
  documented
  rm -rf "./"*
  echo "mpi_test: $launcher: ok, $steps steps, $kills kills; a launcher hung without ranks $hung times"
done
