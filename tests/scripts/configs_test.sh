#!/usr/bin/env bash
# Every experiment in configs/ runs, shortened, and ends with finite losses, whatever target it misses. Folders listed in `others` hold files that
# are not experiments.
# Usage: configs_test.sh THIMBLE_BINARY SOURCE_DIR [all]   (default: without the large models of configs/bench)
set -euo pipefail
thimble=$(realpath "$1")
configs=$(realpath "$2")/configs
others=(sweeps reproduce)
[[ ${3:-} == all ]] || others+=(bench)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
  echo "configs_test: $1" >&2
  exit 1
}

exclude=()
for folder in "${others[@]}"; do exclude+=(-not -path "$configs/$folder/*"); done
mapfile -t files < <(find "$configs" -name '*.yaml' "${exclude[@]}" | sort)
((${#files[@]} >= 7)) || fail "only ${#files[@]} configs in $configs"

short=(train.steps=3 train.schedule.warmup=0 train.evaluate_every=1 train.checkpoint_every=0 data.validation=8
  data.test=8)
for config in "${files[@]}"; do
  name=${config#"$configs"/} run=${config//\//_}
  status=0
  "$thimble" train "$config" "${short[@]}" --out "$run" --quiet 2>said || status=$?
  ((status == 0)) || { ((status == 1)) && [[ $(cat said) == 'thimble: train.target was not reached' ]]; } ||
    fail "$name: exit status $status: $(cat said)"
  # Numbers that are not finite are null in JSON.
  losses=$(grep -oE '"loss": -?[0-9.e+-]+,' "$run/summary.json" | wc -l)
  ((losses == 3)) || fail "$name: not three finite losses, of train, validation and test: $(cat "$run/summary.json")"
done
echo "configs_test: ok (${#files[@]} configs)"
