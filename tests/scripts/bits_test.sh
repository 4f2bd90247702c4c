#!/usr/bin/env bash
# Every config trains to the weights that tests/bits/hashes.txt lists, on every CPU and for any number of threads.
# Usage: bits_test.sh THIMBLE_BINARY SOURCE_DIR [CONFIG...]
#   CONFIG: these alone, on the instruction set at hand; default: all of them on two, and short ones in other ways
#   update, in place of a config: writes the file
#   $EMULATOR: the command that runs the program, such as "qemu-aarch64 -L /"
set -euo pipefail
thimble=$(realpath "$1")
source=$(realpath "$2")
shift 2
read -ra emulator <<<"${EMULATOR:-}"
file=$source/tests/bits/hashes.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source"

short=(train.steps=200 train.schedule.warmup=20 train.evaluate_every=200 train.checkpoint_every=0 data.validation=8
  data.test=8)
train() {  # CONFIG ARGUMENTS...: prints "fused HASH" or "separate HASH"
  local status=0
  "${emulator[@]}" "$thimble" train "$@" "${short[@]}" --out "$work/run" --quiet 2>"$work/said" || status=$?
  # 1: the config has a target, which so few steps miss.
  ((status <= 1)) || { echo "bits_test: $1: exit status $status: $(cat "$work/said")" >&2; return 1; }
  sed -n 's/.*"\(arithmetic\|weights_hash\)": "\([0-9a-z]*\)".*/\1 \2/p' "$work/run/summary.json" | sort >"$work/said"
  rm -r "$work/run"
  awk '{ printf "%s ", $2 } END { print "" }' "$work/said"
}

if [[ ${1:-} == update ]]; then
  for config in configs/*.yaml configs/controls/*.yaml configs/bench/{long,micro,narrow}.yaml; do
    read -r fused_name fused < <(train "$config")
    read -r separate_name separate < <(THIMBLE_TARGET=sse4 train "$config")
    [[ $fused_name == fused && $separate_name == separate ]] ||
      { echo "bits_test: update needs a CPU with fused multiply-adds" >&2; exit 1; }
    printf '%-42s %s %s\n' "$config" "$fused" "$separate"
  done >"$work/hashes"
  { sed '/^#/!d' "$file"; cat "$work/hashes"; } >"$work/new"
  mv "$work/new" "$file"
  exit
fi

checked=0 failures=0
check() {  # CONFIG ARGUMENTS...: compares with the line of the config
  local name hash
  declare -A expected
  read -r _ expected[fused] expected[separate] < <(grep "^$1 " "$file") ||
    { echo "bits_test: $1 is not in $file" >&2; exit 1; }
  read -r name hash < <(train "$@")
  checked=$((checked + 1))
  [[ $hash == "${expected[$name]}" ]] && return
  failures=$((failures + 1))
  echo "FAILED: $* ${THIMBLE_TARGET:+THIMBLE_TARGET=$THIMBLE_TARGET}: $name weights are $hash, not ${expected[$name]}" >&2
}

mapfile -t configs < <(sed '/^#/d; s/ .*//' "$file")
for config in configs/*.yaml configs/controls/*.yaml; do
  [[ " ${configs[*]} " == *" $config "* ]] || { echo "FAILED: $config is not in $file" >&2; failures=$((failures + 1)); }
done
if (($# > 0)); then
  for config in "$@"; do check "$config"; done
else
  quick=(configs/reverse.yaml configs/bench/micro.yaml configs/bench/long.yaml)
  for config in "${configs[@]}"; do
    check "$config"
    [[ -n ${THIMBLE_TARGET:-}${EMULATOR:-} ]] || THIMBLE_TARGET=sse4 check "$config"
  done
  for threads in 1 2 3 7; do
    for config in "${quick[@]}"; do check "$config" --threads $threads; done
  done
  for target in avx2 baseline; do
    for config in "${quick[@]}"; do THIMBLE_TARGET=$target check "$config"; done
  done
fi

if ((failures > 0)); then
  echo "bits_test: $failures failures; if the bits are meant to change:" >&2
  echo "  tests/scripts/bits_test.sh build/release/thimble . update" >&2
  exit 1
fi
echo "bits_test: ok ($checked runs)"
