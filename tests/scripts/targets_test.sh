#!/usr/bin/env bash
# THIMBLE_TARGET leaves out instruction sets, which shows in the last bits of what is trained.
# Usage: targets_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
thimble=$(realpath "$1")
train=(train "$(realpath "$2")/configs/reverse.yaml" train.steps=5 train.schedule.warmup=2 --quiet)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "targets_test: $1" >&2
  exit 1
}
hash() {
  THIMBLE_TARGET=$1 "$thimble" "${train[@]}" --json - | grep '"weights_hash"'
}

refuses() {  # ARGUMENT...: whatever the command computes
  local name status
  for name in TARGET GEMM; do
    status=0
    env THIMBLE_$name=avx9 "$thimble" "$@" >/dev/null 2>said || status=$?
    ((status == 2)) || fail "$*: THIMBLE_$name=avx9: exit status $status"
    grep -qE "THIMBLE_$name avx9: choose (avx2, sse4 or baseline|openblas)" said || fail "an unknown name: $(cat said)"
  done
}
refuses "${train[@]}"
refuses gradcheck --op softmax

separate=$(hash sse4)
[[ $separate == "$(hash sse4)" ]] || fail "two runs differ"
[[ $separate == "$(hash baseline)" ]] || fail "THIMBLE_TARGET=sse4 and baseline differ, both without fused multiply-adds"
if grep -qw avx2 /proc/cpuinfo; then
  [[ $separate != "$(hash avx2)" ]] || fail "THIMBLE_TARGET=sse4 computes what avx2 computes"
fi
