#!/usr/bin/env bash
# Builds the fuzz targets and runs each on what its seeds grow into, for SECONDS (60): a crash, a leak, undefined
# behavior or more than 1 GiB is a finding. What finds one is kept in build/fuzz/findings, and the exit status is 1.
# Usage: scripts/fuzz.sh [SECONDS [TARGET...]]   Needs clang-14 and libfuzzer-14-dev.
#        scripts/fuzz.sh architecture [COUNT [FIRST_SEED [--json FILE]]]: random models, see tests/fuzz/architecture.sh
#        scripts/fuzz.sh state [COUNT [SEED...]]
#   state: damages and changes run directories and tests whether thimble refuses what it must, accepts what it must, and
#   then does what it must, in COUNT (2000) executions of the program, see tests/fuzz/state/state_fuzz.py. Runs are in
#   $TMPDIR. Counts and findings are written to build/fuzz/state.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ${1:-} == architecture ]]; then
  cmake --preset release >/dev/null
  cmake --build --preset release --target architecture_fuzz
  exec tests/fuzz/architecture.sh build/release/tests/fuzz/architecture_fuzz . "${2:-1000}" "${3:-1}" "${@:4}"
fi
if [[ ${1:-} == state ]]; then
  cmake --preset release >/dev/null
  cmake --build --preset release --target thimble_program faults
  mkdir -p build/fuzz
  (($# > 2)) || set -- state "${2:-2000}" 1
  exec /usr/bin/python3 -B tests/fuzz/state/state_fuzz.py build/release/thimble build/release/tests/libfaults.so \
    --count "$2" --seed "${@:3}" --json build/fuzz/state.json
fi

seconds=${1:-60}
shift || true
targets=("$@")
((${#targets[@]} > 0)) || targets=(config safetensors table)

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
mkdir -p build/fuzz/findings
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1

status=0
for target in "${targets[@]}"; do
  echo "fuzz: $target for $seconds s"
  mkdir -p "build/fuzz/corpus/$target"
  [[ $target == config ]] && more=(configs/bench) || more=()
  if ! "build/fuzz/tests/fuzz/${target}_fuzz" -max_total_time="$seconds" -rss_limit_mb=1024 -malloc_limit_mb=1024 \
    -timeout=20 -detect_leaks=1 -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$target-" \
    "build/fuzz/corpus/$target" "tests/fuzz/seeds/$target" "${more[@]}" >"build/fuzz/$target.log" 2>&1; then
    status=1
    tail -n 60 "build/fuzz/$target.log"
    echo "fuzz: $target: found something; the input is in build/fuzz/findings, make it a unit test"
  fi
  grep -E '^stat::|^Done' "build/fuzz/$target.log" || true
  [[ -z ${THIMBLE_NUMBERS:-} ]] || awk -v target="$target" '$1 == "stat::number_of_executed_units:" {
    print "fuzzing of readers, " target ": executions\t" $2 }' "build/fuzz/$target.log" >>"$THIMBLE_NUMBERS"
done
exit $status
