#!/usr/bin/env bash
# Runs the tests of build/release as other CPUs would, which round differently.
# Usage: tests/scripts/other_targets.sh [NAME ...] [ctest arguments]
#   NAME: avx2, zen, sse4 or baseline (no vectors), all by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

all=(avx2 zen sse4 baseline)
names=()
while [[ $# -gt 0 && $1 != -* ]]; do
  names+=("$1")
  shift
done
[[ ${#names[@]} -gt 0 ]] || names=("${all[@]}")

for name in "${names[@]}"; do
  case $name in
    avx2) target=avx2 core=Haswell ;;
    zen) target=avx2 core=Zen ;;
    sse4) target=sse4 core=Nehalem ;;
    baseline) target=baseline core=Prescott ;;
    *)
      echo "other_targets: there is no target $name; choose among ${all[*]}" >&2
      exit 2
      ;;
  esac
  if [[ $target == avx2 ]] && ! grep -qw avx2 /proc/cpuinfo; then
    echo "other_targets: $name left out, this CPU has no AVX2"
    continue
  fi
  echo "other_targets: $name (THIMBLE_TARGET=$target OPENBLAS_CORETYPE=$core)"
  THIMBLE_TARGET=$target OPENBLAS_CORETYPE=$core ctest --test-dir build/release --label-regex '^(fast|slow)$' \
    --no-tests=error --output-on-failure -j2 "$@" </dev/null
  tried=$((${tried:-0} + 1))
done
[[ -z ${THIMBLE_NUMBERS:-} ]] || printf 'instruction sets switched off, one by one\t%d\n' "$tried" >>"$THIMBLE_NUMBERS"
