#!/usr/bin/env bash
# Installs what is missing, then configures and builds the release preset and shows how far it is. What is built stays
# built: after an interruption the same command goes on. Usage: scripts/build.sh [target...]   (default: everything)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'printf "\nbuild: interrupted; the same command goes on from here\n" >&2; exit 130' INT
fail() {  # STEP: shows the end of its output
  tail -n 60 "$log" >&2
  echo "build: failed: $1 (output above)" >&2
  exit 1
}

if [[ ! -f build/release/build.ninja ]]; then
  echo "build: configuring build/release"
  cmake --preset release </dev/null >"$log" 2>&1 || fail "configuring"
fi

clock() { (($1 < 60)) && echo "$1 s" || echo "$(($1 / 60)) min $(($1 % 60)) s"; }

# Shows the steps that Ninja counts: one line that is written over on a terminal, elsewhere one in 20 seconds.
progress() {
  local line done all left bar shown=0 announced="" pattern='^\[([0-9]+)/([0-9]+)\]'
  while IFS= read -r line; do
    [[ $line =~ $pattern ]] || continue
    done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
    ((done > 0)) || continue
    if [[ -z $announced ]] && ((all > 20)); then
      # A step takes about 6.2 s of one processor.
      echo "build: $all steps, about $(clock $((all * 62 / 10 / $(nproc) / 10 * 10 + 10))) with $(nproc) processors"
      announced=yes
    fi
    left=""
    ((done < 10 || SECONDS < 5)) || left=", $(clock $((SECONDS * (all - done) / done))) left"
    if [[ -t 1 ]]; then
      bar=$(printf '%*s' $((20 * done / all)) '')
      printf '\rbuild: [%-20s] [%d/%d]%s\033[K' "${bar// /#}" "$done" "$all" "$left"
    elif ((SECONDS >= shown + 20)); then
      shown=$SECONDS
      echo "build: [$done/$all]$left"
    fi
  done
  [[ ! -t 1 || -z ${done:-} ]] || printf '\r\033[K'
}

echo "build: compiling ${*:-everything} in build/release"
SECONDS=0
cmake --build build/release ${1:+--target "$@"} </dev/null 2>&1 | tee "$log" | progress || fail "compiling"
# The second line is of the processes that were waited for: 1m2.3s for the user, and for the system.
times >"$log"
processor=$(awk 'NR == 2 { split($0, t, /[ms ]+/); print int(60 * (t[1] + t[3]) + t[2] + t[4]) }' "$log")
echo "build: done in $(clock $SECONDS), $(clock "$processor") of processor time"
