#!/usr/bin/env bash
# Every experiment in configs/ runs, shortened, and ends with finite losses, whatever target it misses. Folders listed in `others` hold files that
# are not experiments. With `all`, every task at its smallest sizes, in every layout that it has, goes through the
# commands that read a run: what they cannot do they say in their own words.
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
  name=${config#"$configs"/} run=${config//\//_} smaller=()
  [[ $name != bench/gpt2.yaml ]] || smaller=(task.symbols=1000 model.layers=1)  # its checkpoints have 1.4 GiB each
  status=0
  "$thimble" train "$config" "${short[@]}" "${smaller[@]}" --out "$run" --quiet 2>said || status=$?
  ((status == 0)) || { ((status == 1)) && [[ $(cat said) == 'thimble: train.target was not reached' ]]; } ||
    fail "$name: exit status $status: $(cat said)"
  # Numbers that are not finite are null in JSON.
  losses=$(grep -oE '"loss": -?[0-9.e+-]+,' "$run/summary.json" | wc -l)
  ((losses == 3)) || fail "$name: not three finite losses, of train, validation and test: $(cat "$run/summary.json")"
done

# accepted OVERRIDE...: the config smallest.yaml has no problem with them.
accepted() { "$thimble" config show smallest.yaml "$@" >shown 2>&1; }

# smallest: sets `sizes` to the smallest accepted number of each key of the task; fails where the task lacks the layout.
smallest() {
  sizes=()
  local key number
  accepted "${layout[@]}" || return 1
  for key in $(awk '/^[a-z]/ { task = $1 == "task:" } task && $2 ~ /^[0-9]+$/ { sub(":", "", $1); print $1 }' shown); do
    for number in 0 1 2 3 4 5 6 8 16 64; do
      accepted "${layout[@]}" "${sizes[@]}" "task.$key=$number" || continue
      sizes+=("task.$key=$number")
      break
    done
  done
}

runs=0
if [[ ${3:-} == all ]]; then
  printf 'a b\tc d\nb c\td e\nc\ta\nd e\tb c\ne a\tc d\nb a\tc e\n' >pairs.tsv
  printf 'the cat sat on the mat\n%.0s' {1..40} >text.txt
  # smallest_run: trains the task at `sizes` and tries the commands that read a run.
  smallest_run() {
    rm -rf small
    "$thimble" train smallest.yaml "${layout[@]}" "${sizes[@]}" --out small --quiet 2>said ||
      fail "$task ${layout[*]} ${sizes[*]}: $(cat said)"
    local command status
    for command in eval inspect patch 'patch --edges' 'inspect --sequences 1 --json -' 'eval --predictions answers'; do
      # shellcheck disable=SC2086
      set -- $command
      status=0
      "$thimble" "$1" small "${@:2}" >shown 2>said || status=$?
      ((status == 0)) || { ((status == 2)) && ! grep -qE '::|std|exception' said; } ||
        fail "$command of $task ${layout[*]} ${sizes[*]}: exit status $status: $(cat said)"
    done
    runs=$((runs + 1))
  }
  for task in $("$thimble" tasks | awk '{ print $1 }'); do
    for options in mask=none mask=causal per=sequence 'per=next mask=causal' kind=encoder_decoder kind=recurrent; do
      data='{train: 8, validation: 4, test: 4}' more=
      case $task in
        file) more=', file: pairs.tsv' data='{validation: 2, test: 2}' ;;
        text) more=', file: text.txt, documents: stream' data='{validation: 3, test: 3}' ;;
        anomaly) more=', symbols: 64' ;;
      esac
      printf '%s\n' "task: {name: $task$more}" "data: $data" 'model: {layers: 1, heads: 1, d_model: 4, d_ff: 4}' \
        'train: {steps: 2, batch: 4, schedule: {warmup: 0}}' >smallest.yaml
      read -ra layout < <(sed 's/mask/model.attention.&/g; s/per/model.output.&/; s/kind/model.&/' <<<"$options")
      smallest || continue
      smallest_run
      # A length of its smallest and two has positions that differ in what they can see.
      [[ ${sizes[*]} =~ task\.length=([0-9]+) ]] || continue
      accepted "${layout[@]}" "${sizes[@]}" "task.length=$((BASH_REMATCH[1] + 2))" || continue
      sizes+=("task.length=$((BASH_REMATCH[1] + 2))")
      smallest_run
    done
  done
  ((runs >= 90)) || fail "only $runs of the smallest runs"
fi
echo "configs_test: ok (${#files[@]} configs, $runs runs of the smallest sizes)"
