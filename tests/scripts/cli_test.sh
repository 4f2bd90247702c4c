#!/usr/bin/env bash
# The commands of the program: results that agree with one another, and with the documentation; tests/cases has the rest.
# Usage: cli_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

short=(train.steps=20 train.schedule.warmup=5 data.validation=100 data.test=100)

"$thimble" train "$configs/reverse.yaml" "${short[@]}" --out run --quiet

# eval gives the result that training reported.
"$thimble" eval run --json eval.json --quiet
[[ $(grep -A4 '"test"' eval.json) == $(grep -A4 '"test"' run/summary.json) ]] || fail "eval differs from the run's summary"

# `config show` prints an equal config: as YAML with the cost in comments, and as JSON.
cp "$configs/sort.yaml" .
values() { sed 's/ *#.*//' "$1"; }
"$thimble" config show sort.yaml train.batch=32 >shown.yaml
"$thimble" config show shown.yaml >again.yaml
diff <(values shown.yaml) <(values again.yaml) || fail "config show does not print the config it read"
"$thimble" config show shown.yaml --json shown.json --quiet
"$thimble" config show shown.json >again.yaml
diff <(values shown.yaml) <(values again.yaml) || fail "the JSON of config show is another config"
for line in 'steps: 2000 +# sort.yaml:21' 'batch: 32 +# command line' 'shards: 4 +# default'; do
  grep -qE "^  $line$" shown.yaml || fail "no $line in what config show prints" "$(cat shown.yaml)"
done
! grep -qE '.{81}' shown.yaml || fail "config show is wider than 80 columns" "$(grep -E '.{81}' shown.yaml)"

"$thimble" tasks | while read -r name summary; do
  grep -qF "| \`$name\` | $summary |" "$configs/../docs/tasks.md" || fail "docs/tasks.md lacks $name: $summary"
done
echo '{}' >defaults.yaml
"$thimble" config show defaults.yaml | sed -nE 's/^ +([a-z_0-9]+): ([^ ]+) +# default$/| `\1` | \2 |/p' | while read -r row; do
  grep -qF "$row" "$configs/../docs/configs.md" || fail "docs/configs.md lacks $row"
done

# The sequences of a config are reproducible, depend on the seed, and are printed in 80 columns.
sequences() { "$thimble" tasks --config "$configs/reverse.yaml" --examples 300 --json - "$@"; }
sequences >once.json
sequences | diff once.json - || fail "tasks --config printed other sequences the second time"
! sequences train.seed=7 | grep -v '"seed"' | diff -q <(grep -v '"seed"' once.json) - >/dev/null ||
  fail "tasks --config does not mind the seed"
(($(grep -c '"index"' once.json) == 300)) || fail "tasks --config --examples 300 printed another number"

# With --json - standard output is only the JSON; a pipe gets no colors and no carriage returns.
"$thimble" train "$configs/reverse.yaml" "${short[@]}" --out piped --json - >out 2>err
[[ $(head -c 1 out) == "{" && $(tail -n 1 out) == "}" ]] || fail "standard output is not JSON alone" "$(cat out)"
! grep -q $'[\r\033]' out err || fail "control characters in a pipe"
accuracy=$(sed -n 's/^{"step":20,"split":"train",.*"accuracy":\([^,]*\),.*/\1/p' piped/metrics.jsonl)
accuracy=$(awk -v a="$accuracy" 'BEGIN { printf "%.2f", 100 * a }')
grep -qE "^step 20/20  loss [0-9.]+  tokens +$accuracy % .* 0 s left$" err ||
  fail "no plain progress lines" "$(cat err)"

# The same bits on one thread and on two, and again.
hash() { sed -n 's/.*"weights_hash": "\([0-9a-f]*\)".*/\1/p' "$1/summary.json"; }
"$thimble" train "$configs/reverse.yaml" "${short[@]}" --out one --threads 1 --quiet
"$thimble" train "$configs/reverse.yaml" "${short[@]}" --out two --threads 2 --quiet
[[ -n $(hash one) && $(hash one) == "$(hash two)" ]] || fail "weights depend on the number of threads"
without_times() { sed 's/,"seconds":[^}]*//' "$1/metrics.jsonl"; }
[[ $(without_times one) == "$(without_times two)" ]] || fail "metrics depend on the number of threads"
[[ $(without_times run) == "$(without_times one)" ]] || fail "metrics differ between two runs"

# A launcher's processes would be copies of each other without MPI; a batch script of Slurm is one process.
for launcher in "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE" "PMI_RANK PMI_SIZE" "SLURM_PROCID SLURM_STEP_NUM_TASKS"; do
  read -r rank size <<<"$launcher"
  export "$rank=1" "$size=3"
  refuse 'started as 3 processes, but ' train "$configs/reverse.yaml" "${short[@]}" --out copies
  unset "$rank" "$size"
done
SLURM_NTASKS=3 SLURM_PROCID=0 expect 0 '' train "$configs/reverse.yaml" "${short[@]}" --out batch_script

# A task whose defaults it refuses is defined nevertheless.
refuse 'symbols 10: must be a square number' tasks anomaly
grep -q '^Tokens are the cells of a square' <<<"$output" || fail "thimble tasks anomaly does not define it" "$output"

# An error is wrapped at 80 columns on a terminal, and one line elsewhere.
expect 2 '.{81}' trace run "1 1x"
on_terminal=$(script -qec "'$thimble' trace run '1 1x'" /dev/null </dev/null | tr -d '\r') || true
! grep -E '.{81}' <<<"$on_terminal" || fail "an error is wider than a terminal" "$on_terminal"
[[ $(tr '\n' ' ' <<<"$on_terminal") == "$output " ]] || fail "a terminal gets another error" "$on_terminal"

# Without memory, a config that needs it is refused before memory is allocated.
if [[ $(ldd "$thimble") != *libasan* && $(ldd "$thimble") != *libtsan* ]]; then  # sanitizers need address space
  (ulimit -v 1500000 && refuse 'this config needs about [0-9.]+ TiB of memory, but only .* is left:' \
    train "$configs/reverse.yaml" model.d_model=8192 model.d_ff=65536 model.layers=128 train.shards=100)
  (ulimit -v 1500000 && refuse '3\.[0-9] GiB of memory, but only [0-9.]+ [MG]iB is left:' \
    train "$configs/reverse.yaml" --threads 2 model.d_model=4096)
  (ulimit -v 1500000 && expect 0 'test +loss' train "$configs/reverse.yaml" --threads 2 "${short[@]}" --out limited)
fi
if ((EUID != 0)); then
  mkdir sealed && chmod 555 sealed
  refuse 'sealed/run: cannot be created' train "$configs/reverse.yaml" --out sealed/run
fi
echo "cli_test: ok"
