#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests; names the slowest ten before the summary.
# Usage: scripts/test.sh [--all] [ctest arguments], for example: scripts/test.sh -R attention
#   --all: the slow ones too, which run what README and docs show, and open reports in a browser
#   -L cluster: those of MPI, in build/mpi if preset mpi was configured, and of Slurm (scripts/setup.sh mpi cluster)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh

labels='^fast$' which='fast tests' directory=build/release
if [[ ${1:-} == --all ]]; then
  labels='^(fast|slow)$' which='fast and the slow tests'
  shift
elif [[ ${1:-} == -L ]]; then
  labels="^$2\$" which="tests labeled $2"
  shift 2
  if [[ $labels == '^cluster$' && -f build/mpi/build.ninja ]]; then
    directory=build/mpi
    cmake --build --preset mpi
  fi
fi
echo "test: running the $which"
ctest --test-dir $directory --label-regex "$labels" --no-tests=error --output-on-failure -j2 "$@" </dev/null | awk '
  /^ *[0-9]+\/[0-9]+ Test +#.* sec *$/ { seconds[$4] = $(NF - 1) }
  /^[0-9]+% tests passed/ { in_summary = 1 }
  in_summary { summary = summary $0 "\n"; next }
  { print; fflush() }
  END {
    print "\nThe slowest:"
    fflush()
    for (test in seconds) printf "%8.2f s  %s\n", seconds[test], test | "sort -nr | head -n 10"
    close("sort -nr | head -n 10")
    printf "\n%s", summary
  }'
