#!/usr/bin/env bash
# Builds from nothing in build/cost, without ccache, and prints the processor seconds of each room and of the ten most
# expensive compilations, and the sum in units of the compile of scripts/reference.cpp, as machines differ. It is timed
# every half minute beside the build, as a shared machine is up to 1.5 times as slow in one minute as in the next.
# Usage: scripts/build_cost.sh [target...]   (default: thimble_program)
#        scripts/build_cost.sh --limits: builds build/release, the program and then the rest, and fails if one of them takes
#          more than 1.3 times the units that scripts/floors.txt allows
set -euo pipefail

if [[ ${1:-} == --measure ]]; then  # as a launcher: --measure LOG COMPILER ARGUMENT...
  log=$2
  shift 2
  for ((i = 1; i < $#; i++)); do [[ ${!i} != -o ]] || { i=$((i + 1)) && object=${!i}; }; done
  TIMEFORMAT='%U %S'
  exec {errors}>&2
  seconds=$({ time "$@" 2>&"$errors" >&"$errors"; } 2>&1) || exit $?
  echo "$seconds ${object:--}" >>"$log"
  exit
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
references=$(mktemp -d)
trap 'rm -rf "$references"' EXIT
reference() {  # appends the processor seconds of one reference compile
  { time "${CXX:-g++}" -std=c++20 -O1 -c scripts/reference.cpp -o /dev/null; } 2>>"$references/seconds"
}
TIMEFORMAT='%U %S'
start_references() {
  reference  # reads the headers from the disk
  : >"$references/seconds"
  touch "$references/wanted"
  while [[ -e $references/wanted ]]; do
    reference
    for ((i = 0; i < 20; i++)); do [[ ! -e $references/wanted ]] || sleep 1; done
  done &
}
stop_references() {  # prints their mean, and how many; in this shell, as another one could not wait for the last
  rm "$references/wanted"
  wait
  awk '{ sum += $1 + $2 } END { print sum / NR, NR }' "$references/seconds"
}

if [[ ${1:-} == --limits ]]; then
  if [[ -e build/release/build.ninja ]]; then
    echo "build_cost: build/release is there already, so what it costs is not measured"
    exit
  fi
  export CCACHE_DISABLE=1
  status=0 limits=$(grep '^build ' scripts/floors.txt)
  while read -r _ what target limit; do
    start_references
    { time scripts/build.sh "$target" </dev/null 2>&3; } 3>&2 2>"$references/build"
    stop_references >"$references/mean"
    cat "$references/build" "$references/mean" | awk -v RS= -v limit="$limit" -v what="$what" '{
      units = ($1 + $2) / $3
      printf "build of the %-8s %6.1f reference compiles of %.2f s (mean of %d), at most 1.3 times %d\n", what, units, $3, $4, limit
      exit units > 1.3 * limit
    }' || status=1
  done <<<"$limits"
  ((status == 0)) || echo "build_cost: look for what became expensive with scripts/build_cost.sh" >&2
  exit $status
fi

cmake -E rm -rf build/cost
mkdir -p build/cost
log=$PWD/build/cost/seconds.txt
cmake -S . -B build/cost -G Ninja -DCMAKE_BUILD_TYPE=Release \
  "-DCMAKE_CXX_COMPILER_LAUNCHER=$PWD/scripts/build_cost.sh;--measure;$log" >/dev/null
if (($# == 0)); then set -- thimble_program; fi
start_references
cmake --build build/cost --target "$@" >build/cost/log.txt 2>&1 || { tail -n 40 build/cost/log.txt >&2 && exit 1; }
stop_references >"$references/mean"
awk -v reference="$(<"$references/mean")" '{
  seconds = $1 + $2
  object = $3
  gsub(/CMakeFiles\/|\.dir|Unity\/unity_|_cxx\.cxx|\.o$/, "", object)
  if (object ~ /cmake_pch/) room = "precompiled headers"
  else if ($3 ~ /^tests\//) room = "tests"
  else if ($3 ~ /\/tasks\//) room = "tasks"
  else if ($3 ~ /Unity\//) { room = object; sub(/\/.*/, "", room) }
  else { room = object; sub(/\/[^\/]*$/, "", room); sub(/.*\//, "", room) }
  total += seconds
  of[room] += seconds
  files[room]++
  cost[object] = seconds
} END {
  split(reference, unit, " ")
  printf "%7.1f  %4d  all: %.1f reference compiles of %.2f s (mean of %d)\n", total, NR, total / unit[1], unit[1], unit[2]
  for (room in of) printf "%7.1f  %4d  %s\n", of[room], files[room], room | "sort -nr"
  close("sort -nr")
  print ""
  for (object in cost) printf "%7.1f        %s\n", cost[object], object | "sort -nr | head"
}' "$log"
