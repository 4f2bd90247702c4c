#!/usr/bin/env bash
# The commands of the program: output, files and exit status, with valid and invalid input.
# Usage: cli_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

short=(train.steps=20 train.schedule.warmup=5 data.validation=100 data.test=100)

# A run and everything that reads it.
expect 0 'test +loss [0-9.]+ +tokens' train "$configs/reverse.yaml" "${short[@]}" --out run
for file in config.yaml metrics.jsonl summary.json checkpoints/final.safetensors; do
  [[ -s run/$file ]] || fail "the run has no $file"
done
expect 0 '"weights_hash"' train "$configs/reverse.yaml" "${short[@]}" --json - --quiet
expect 0 'runs/reverse-[0-9a-f]{8}-2$' train "$configs/reverse.yaml" "${short[@]}"
expect 0 'test +loss' eval run
# An option takes one word; several splits are one word, or one option each.
expect 0 '^test .* of 50$' eval run --split test data.test=50
! grep -q '^validation ' <<<"$output" || fail "another split than asked for" "$output"
expect 0 '^test .* of 30$' eval run --sequences 30
for several in '--split validation,test' '--split validation --split test'; do
  expect 0 '^test .* of 50$' eval run $several data.test=50
  grep -q '^validation ' <<<"$output" || fail "$several: not both" "$output"
done
# Without --split, a split that the data have no sequences for is left out.
cat >few.yaml <<'EOF'
task: {name: modular_addition, symbols: 5}
data: {train: 24}
model: {d_model: 4, heads: 1, layers: 1, output: {per: sequence}}
train: {steps: 2, batch: 4, shards: 1, threads: 1}
EOF
expect 0 '^test .* of 1$' train few.yaml --out few
expect 0 '^test .* of 1$' eval few --sequences 4
! grep -q '^validation ' <<<"$output" || fail "an empty split is evaluated" "$output"
refuse 'data.train has 24 of the 25 inputs, so the validation split is empty' eval few --split validation
expect 0 '^No effects of interest: a constant answer is always right on 1 test sequence\.' inspect few
! grep -q 'nan' <<<"$output" || fail "an interval of one sequence" "$output"
refuse 'tset: must be one of' eval run --split validation,tset
expect 0 '^0\.0  ' patch run --clean 0 --corrupted 1 data.test=50
expect 0 '^head label +entropy .* Δloss  Δtokens grad\.imp$' inspect run --sequences 50
! grep -E '.{81}' <<<"$output" || fail "inspect is wider than 80 columns" "$output"
grep -q '^head 0.0: ' <<<"$output" || fail "no sentence on head 0" "$output"
expect 0 '' inspect run --sequences 50 --html page.html --svg head.svg --json report.json
grep -q '^<!doctype html>' page.html && grep -q '^<svg ' head.svg || fail "no page or no drawing" "$(ls)"
[[ $(grep -c '"sentence"' report.json) == 1 ]] || fail "not one sentence in the report" "$(cat report.json)"
expect 0 '^0\.0  +[+-][0-9.]+ +[+-][0-9.]+$' patch run --clean 0 --corrupted 1
expect 0 '^0\.0  +[+-][0-9.]+ \([+-][0-9.]+ to [+-][0-9.]+\) ' patch run --pairs 20 --html patched.html
grep -q '"patching":{"pairs":20,' patched.html || fail "no patching in the page" "$(ls)"
expect 0 '^[* ] embedding -> 0\.0 value +[+-][0-9.]+ ' patch run --edges --pairs 20 --html edges.html --json edges.json
grep -q '"edges":{"pairs":' edges.html || fail "no section on edges" "$(ls)"
[[ $(grep -c '"from"' edges.json) == 8 ]] || fail "not 8 edges" "$(cat edges.json)"
expect 0 '^Logit lens, tokens % of the output after embedding [0-9.]+, layer 0 [0-9.]+$' inspect run --sequences 50
expect 0 '^zero +[+-][0-9.]+ ' ablate run 0.0 --sequences 50
expect 0 '"unpaired"' ablate run 0.0 --sequences 50 --json -
refuse 'there is no head "0.1"; the model has 0.0' ablate run 0.1
refuse 'head 0.0 is given twice' ablate run 0.0,0.0
refuse 'there is no head ""' ablate run ''
refuse 'must be a number above 0 and below 1' inspect run --smallest-effect 1
expect 0 '^warning: the model is no better than chance' inspect run --sequences 50
expect 0 '' trace run "1 2 3" --svg input.svg
grep -q '^<svg ' input.svg || fail "no drawing of the input" "$(ls)"
# All keys of a model without a mask are drawn; keys that a causal mask hides are hatched.
! grep -q "hatched: masked" head.svg input.svg || fail "masked keys in a model without a mask" "$(cat input.svg)"
expect 0 '^ *1 ([^ ][^ ]){3}$' trace run "1 2 3"
expect 0 '' train "$configs/reverse.yaml" "${short[@]}" model.attention.mask=causal --out causal
expect 0 '^ *1 [^ ][^ ]$' trace causal "1 2 3" --svg causal.svg
grep -q "hatched: masked" causal.svg && ! grep -q '<rect x="0" .*url(#masked)' causal.svg ||
  fail "other keys of a causal model are hatched than the masked ones" "$(cat causal.svg)"
expect 0 '^prediction  ' trace run "1 2 3"
expect 0 '^head 0.0$' trace run "1 2 3" --heads 0.0
expect 0 '^head 0.0$' trace run "1 2 3" --heads 'encoder.0.*'
refuse "^thimble: --layer 0: is now --heads '0\.\*', for all of its heads$" inspect run --layer 0
expect 0 '' inspect run --sequences 50 --heads '0.*'
refuse "^thimble: --head 0: is now --heads '\*\.0', for all layers$" inspect run --head 0
expect 0 '' inspect run --sequences 50 --heads '*.0'
expect 0 '^too many tokens to draw' trace run "$(printf '1 %.0s' {1..79})" task.length=100
! grep -E '.{81}' <<<"$output" || fail "trace is wider than 80 columns" "$output"
expect 0 '' inspect run --npy arrays --sequences 7
[[ $(cd arrays && echo *) == "attention.npy lengths.npy tokens.npy" ]] || fail "other arrays" "$(ls arrays)"

# Of many heads the maps of four are drawn, unless one is selected; the table has the numbers of the JSON.
expect 0 '' train "$configs/reverse.yaml" "${short[@]}" model.heads=8 --out many
expect 0 '^The 4 most important heads;' inspect many --sequences 50 --json many.json
maps() { grep -oE 'head 0\.[0-9]( |$)' <<<"$output"; }
[[ $(maps | wc -l) == 4 ]] || fail "not four maps" "$output"
change=$(sed -n '/"zero"/,/}/s/.*"accuracy_change": \(.*\),/\1/p' many.json | head -1)
grep -qE "^0\.0 .* $(awk -v c="$change" 'BEGIN { printf "[%s]%.2f", c < 0 ? "-" : "+", 100 * (c < 0 ? -c : c) }') " \
  <<<"$output" || fail "another change of accuracy than $change" "$output"
expect 0 '' inspect many --sequences 50 --heads 0.3
[[ $(maps) == "head 0.3" ]] || fail "other maps than that of head 3" "$output"
refuse '\-\-svg draws one head' inspect many --heads '0.*' --svg many.svg

# An encoder-decoder: three kinds of attention, with names; maps between two sequences.
expect 0 '' train "$configs/reverse.yaml" "${short[@]}" task.length=6 model.kind=encoder_decoder model.output.per=next --out pair
expect 0 '' inspect pair --sequences 50 --html pair.html --svg cross.svg --heads cross.0.0
grep -q '^<!doctype html>' pair.html && grep -q '>head cross.0.0, ' cross.svg || fail "no page or no drawing" "$(ls)"
expect 0 '^cross\.0\.0   ' inspect pair --sequences 50
! grep -E '.{81}' <<<"$output" || fail "inspect of an encoder-decoder is wider than 80 columns" "$output"
grep -q '^head cross\.0\.0: ' <<<"$output" || fail "no sentence on the cross head" "$output"
expect 0 '' inspect pair --sequences 50 --heads cross.0.0
[[ $(grep -A8 '^head cross\.0\.0$' <<<"$output" | grep -c '^ *[0-6] ') == 7 ]] || fail "not 7 queries of 6 keys" "$output"
expect 0 '^output  ' trace pair "1 2 3" --heads 'cross.0.*'
grep -q '^head cross\.0\.0$' <<<"$output" && ! grep -q '^head encoder' <<<"$output" || fail "other maps than asked for" "$output"
expect 0 '^0\.[0-9]{3}  ' generate pair --input "1 2 3"
expect 0 '' generate pair --input "1 2 3" --beams 5 --json hypotheses.json
[[ $(grep -c log_probability hypotheses.json) == 5 ]] || fail "not as many hypotheses as beams" "$(cat hypotheses.json)"
refuse 'no token 12, did you mean' generate pair --input "12"
expect 0 '^thimble: not in the first 1000 training inputs: <end>; the output' generate pair --input "1 <end> 3"
refuse 'or attention and model.output.per next; `thimble trace` shows what this model predicts$' generate run --input "1 2"
expect 0 '^0\.[0-9]{3}  ' generate pair --input "1 2 3" --samples 3 --seed 4 --temperature 2 --probabilities --json drawn.json
drawn=$output
[[ $(grep -c '^       .* [01]\.[0-9]*' <<<"$drawn") == 3 ]] || fail "no probabilities of tokens" "$drawn"
first=$(grep -A2 '"log_probabilities": \[' drawn.json | awk -F'[ ,]*' 'NR == 2 { printf "%.3f", exp($2) }')
grep -m1 '^       ' <<<"$drawn" | grep -q " $first" || fail "the first token has other probabilities" "$first: $drawn"
expect 0 '' generate pair --input "1 2 3" --samples 3 --seed 4 --temperature 2 --probabilities
[[ $output == "$drawn" ]] || fail "the same seed draws others" "$output"
expect 0 '' generate pair --input "1 2 3" --samples 3 --seed 5 --temperature 2 --probabilities
[[ $output != "$drawn" ]] || fail "another seed draws the same" "$output"
refuse 'temperature requires --samples' generate pair --input "1 2" --temperature 2
refuse 'beams excludes --samples' generate pair --input "1 2" --beams 2 --samples 2
refuse 'temperature 0: must be a number above 0, at most 1000$' generate pair --input "1 2" --samples 1 --temperature 0
refuse 'top-p 1.5: must be a number above 0, at most 1$' generate pair --input "1 2" --samples 1 --top-p 1.5
refuse 'top-k 0: must be an integer from 1$' generate pair --input "1 2" --samples 1 --top-k 0
refuse 'generate: 9 tokens; after this input, the model writes at most 7$' generate pair --input "1 2" --tokens 9
expect 0 '' train "$configs/sort.yaml" "${short[@]}" --out sorting
expect 0 '^0\.[0-9]{3}  [012]( [012]){5}$' generate sorting --input "2 0 1 0 1 2"
expect 0 '^0\.[0-9]{3}  [012]( [012]){3}$' generate sorting --input "2 0 1 0 1 2" --tokens 4 --beams 1
refuse 'beams' generate pair --input "1 2" --beams 0
refuse 'input: is empty; give tokens separated by spaces' generate pair
expect 0 '^cross\.0\.0 +[+-][0-9.]+ +[+-][0-9.]+$' patch pair --clean 0 --corrupted 1 --heads 'cross.0.*' --json patched.json
! grep -qE '^(encoder|decoder)' <<<"$output" || fail "other heads than asked for" "$output"
[[ $(grep -c '"attention": "cross.0"' patched.json) == 1 ]] || fail "the JSON has no names" "$(cat patched.json)"
expect 0 '' inspect pair --npy pairs --sequences 7
[[ $(cd pairs && echo *) == "cross.npy decoder.npy encoder.npy lengths.npy source_lengths.npy sources.npy tokens.npy" ]] ||
  fail "other arrays" "$(ls pairs)"
expect 0 '' train "$configs/translation_recurrent.yaml" "${short[@]}" --out recurrent
expect 0 '^cross\.0\.0 ' inspect recurrent --sequences 50 --npy looks --html recurrent.html
[[ $(cd looks && echo *) == "cross.npy lengths.npy source_lengths.npy sources.npy tokens.npy" ]] ||
  fail "other arrays of a recurrent model" "$(ls looks)"
expect 0 '^output  ' trace recurrent "le chien chante"
expect 0 'not in the first 4 training inputs: the, dog;' generate recurrent data.train=4 train.batch=4 --input "the dog"
refuse 'there is no head "0\.\*"; the model has cross\.0\.0$' inspect recurrent --heads '0.*'
refuse 'score none has no attention heads' inspect recurrent model.attention.score=none
refuse 'no head "cross\.1\.\*"; the model has encoder\.0\.0, decoder\.0\.0, cross\.0\.0$' inspect pair --heads 'cross.1.*'
refuse "^thimble: --attention cross\.0: is now --heads 'cross\.0\.\*', for all of its heads$" inspect pair --attention cross.0
refuse 'draws one head; choose it with --heads$' inspect pair --svg pair.svg
refuse '7 tokens; this model accepts at most 6' trace pair "1 1 1 1 1 1 1"

expect 0 'test +loss' eval --config run/config.yaml --weights run/checkpoints/final.safetensors
expect 0 'median' bench "$configs/bench/micro.yaml" --steps 5
! grep -q generation <<<"$output" || fail "a model of another task generates text" "$output"
expect 0 '^generation +[0-9]+ tokens/s on 1 thread, 5 documents at once$' bench "$configs/names.yaml" --steps 5
expect 0 '"generated_tokens_per_s": [1-9]' bench "$configs/shakespeare.yaml" train.schedule.warmup=1 --steps 2 --json - --quiet
expect 0 'd_model: 32' config show "$configs/reverse.yaml"
expect 0 '"heads": 2' config show "$configs/reverse.yaml" model.heads=2 --json -
expect 0 '^# parameters +[0-9]+$' config show "$configs/reverse.yaml"
expect 0 '^training step +126\.4 GFLOP' config cost "$configs/bench/base.yaml"
expect 0 '^encoder\.layers\.5 +attention +1 .* 1\.611$' config cost "$configs/bench/base.yaml" --by-op
expect 0 '^total .* 126\.4$' config cost "$configs/bench/base.yaml" --by-op
expect 0 '"parameters": 4804736,$' config cost "$configs/bench/base.yaml" --json -
expect 0 '"\$schema"' config schema
expect 0 '^reverse +the input backwards$' tasks
expect 0 '^keys +symbols=10, length=8, min_length=0, offset=3$' tasks shift task.length=8 task.offset=3
expect 0 '^answer  [01]$' tasks parity
expect 0 '"chance": 0.5,' tasks majority task.symbols=2 --json -
expect 0 '^train [0-9]+$' tasks --config "$configs/reverse.yaml" --examples 1
expect 0 '^test 0$' tasks --config "$configs/reverse.yaml" --split test task.length=8
expect 0 '0 wrong' gradcheck --op softmax
expect 0 'Exit status' --help
expect 0 '^thimble [0-9]' --version

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
for arguments in '' 'histogram task.symbols=100' 'dyck_valid task.length=100' "--config $configs/reverse.yaml"; do
  ! "$thimble" tasks $arguments | grep -E '.{81}' || fail "thimble tasks $arguments is wider than 80 columns"
done

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

# Paths on the command line are relative to the current folder, those of a config to its folder; errors of a base are
# located in the base.
mkdir -p sub
printf 'base: ../base.yaml\nmodel: {layers: 2}\n' >sub/on_top.yaml
printf 'model: {layers: 1, heads: 4}\n' >base.yaml
expect 0 '^  heads: 4 +# base.yaml:1$' config show sub/on_top.yaml
expect 0 '^  layers: 2 +# sub/on_top.yaml:2$' config show sub/on_top.yaml
expect 0 '"heads": 4' config show sub/on_top.yaml --json - --quiet
printf 'model: {layers: 1, head: 4}\n' >base.yaml
refuse '^base.yaml:1:20: model.head: unknown key' train sub/on_top.yaml

# Training that diverges: status 3, with step, op and layer.
expect 3 'step [0-9]+: .*op [a-z_]+, layer [a-z]' train "$configs/reverse.yaml" "${short[@]}" --out diverges \
  train.optimizer.name=sgd train.optimizer.lr=100 train.optimizer.momentum=0.99 train.clip_norm=0 \
  model.norm=pre model.layers=4 model.positions=none

# A launcher's processes would be copies of each other without MPI; a batch script of Slurm is one process.
for launcher in "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE" "PMI_RANK PMI_SIZE" "SLURM_PROCID SLURM_STEP_NUM_TASKS"; do
  read -r rank size <<<"$launcher"
  export "$rank=1" "$size=3"
  refuse 'started as 3 processes, but ' train "$configs/reverse.yaml" "${short[@]}" --out copies
  unset "$rank" "$size"
done
SLURM_NTASKS=3 SLURM_PROCID=0 expect 0 '' train "$configs/reverse.yaml" "${short[@]}" --out batch_script

# A missed target: status 1.
expect 1 'train.target was not reached' train "$configs/reverse.yaml" "${short[@]}" train.target.accuracy=1 --out missed

# Invalid commands and files.
refuse 'missing command'
refuse 'CONFIG' train
refuse 'no-such.yaml: cannot be read' train no-such.yaml
refuse 'frobnicate' frobnicate
refuse 'did you mean model.heads' train "$configs/reverse.yaml" model.head=2
refuse 'run: exists and is not an empty directory' train "$configs/reverse.yaml" --out run
refuse 'no such run' eval nowhere
refuse 'not a run' eval sub
refuse 'checkpoint requires a run directory; --weights already names' eval --weights run/checkpoints/final.safetensors --checkpoint best
refuse '--config requires --weights' eval --config "$configs/reverse.yaml"
refuse 'task.name=majorit: .*did you mean majority' tasks majorit
refuse 'length 5: must be even' tasks dyck_match task.length=5
refuse 'symbols 10: must be a square number' tasks anomaly
grep -q '^Tokens are the cells of a square' <<<"$output" || fail "thimble tasks anomaly does not define it" "$output"
refuse 'requires --config' tasks copy --split test
refuse '100 sequences, not 101' tasks --config "$configs/reverse.yaml" --split test data.test=100 --examples 101
refuse 'unknown op frob; must be one of add' gradcheck --op frob
refuse 'config or --op' gradcheck "$configs/reverse.yaml" --op add
refuse 'shape \(16, 32\), the model needs|has shape' eval run model.d_model=16
refuse 'threads' train "$configs/reverse.yaml" --threads -1
refuse 'no token 12, did you mean [0-9]\?; the vocabulary has 10 tokens: 0 1 2 3 4 5 6 7 8 9$' trace run "1 12"
refuse 'input: is empty' trace run ""
refuse '17 tokens; this model accepts at most 16' trace run "$(printf '1 %.0s' {1..17})"
refuse 'there is no head "1\.\*"; the model has 0\.0$' inspect run --heads '1.*'
refuse 'there is no head "0\.2"; the model has 0\.0 to 0\.1$' inspect run model.heads=2 --heads 0.2
refuse 'head 0\.0 is given twice' trace run --heads '0.0,*' "1 2"
refuse 'there is no sequence 100; give 0 to 99' patch run --clean 1 --corrupted 100
refuse 'there is no sequence -1' patch run --clean -1 --corrupted 1
refuse 'choose two that differ' patch run --clean 3 --corrupted 3
refuse '^thimble: --clean requires --corrupted; see' patch run --clean 1
refuse '^thimble: --corrupted requires --clean; see' patch run --corrupted 1
refuse '^thimble: --sequences requires --html; see' patch run --sequences 50
refuse '^thimble: --examples requires --html; see' patch run --edges --examples 3
refuse '^thimble: --pairs 50: --clean and --corrupted are one pair; leave them or --pairs out$' patch run --clean 0 --corrupted 1 --pairs 50
refuse '--pairs 1: must be an integer from 2' patch run --edges --pairs 1
refuse '^thimble: --edges measures every edge over many pairs; leave out --clean, --corrupted and --heads$' patch run --edges --heads 0.0
refuse '^thimble: --edges measures every edge over many pairs; leave out' patch run --edges --clean 0 --corrupted 1
refuse 'requires model.kind encoder' patch pair --edges
refuse '\-\-svg draws one head; choose it with --heads$' inspect run model.layers=2 --svg two.svg
refuse '^thimble: --sequences requires --html; see' trace run "1 2" --sequences 10
refuse '^thimble: missing TEXT: give RUN TEXT, or --weights FILE TEXT$' trace run
refuse '^thimble: missing HEADS: give RUN HEADS, or --weights FILE HEADS$' ablate run
refuse 'no token 12' trace run "1 12" --html other.html

# Former options of inspect name the command that took their place, which works as it is printed.
printed() {  # PATTERN ARGUMENT...: runs the command that the message names, for the run `run`
  refuse "$@"
  eval "set -- ${output##*is now thimble }"
  expect 0 '' "${@//RUN/run}"
}
printed '^thimble: --input 1 2 3: is now thimble trace RUN "1 2 3"$' inspect run --input "1 2 3"
printed '^thimble: --edges: is now thimble patch RUN --edges$' inspect run --edges
printed '^thimble: --pairs 20: is now thimble patch RUN --pairs 20$' inspect run --pairs 20
printed '^thimble: --ablate 0\.0: is now thimble ablate RUN 0\.0$' inspect run --ablate 0.0
for pair in '' ' 0 1'; do
  refuse '^thimble: --patch.*: is now thimble patch RUN; for one pair, add --clean N --corrupted N$' inspect run --patch $pair
done
refuse 'there is no sequence 9223372036854775807; give 0 to 99' patch run --clean 0 --corrupted 9223372036854775807
refuse 'there is no sequence 2; give' patch run data.test=2 --clean 0 --corrupted 2
refuse '^thimble: --clean a: must be an integer$' patch run --clean a --corrupted b
refuse 'no such run' inspect nowhere
refuse 'no such checkpoint; the run has final, best$' inspect run --checkpoint 7
cp -r run damaged
printf '\377\377\377\377' | dd of=damaged/checkpoints/final.safetensors bs=1 seek=9000 conv=notrunc status=none
refuse 'checksum does not match: the file is damaged' inspect damaged --html damaged.html --json damaged.json
refuse 'checksum does not match' trace damaged "1 2" --svg damaged.svg
refuse 'checksum does not match' patch damaged --clean 0 --corrupted 1 --json damaged.json
truncate -s 1000 damaged/checkpoints/final.safetensors
refuse 'it is truncated' inspect damaged --npy arrays_of_damaged
other=(--config "$configs/reverse.yaml" model.d_ff=0 --weights run/checkpoints/final.safetensors --json other.json)
refuse 'unexpected tensor .*; use the config' inspect "${other[@]}"
refuse 'unexpected tensor .*; use the config' trace "1 2" "${other[@]}"
refuse 'unexpected tensor .*; use the config' patch "${other[@]}" --clean 0 --corrupted 1
refuse 'weights: cannot be read: No such file' inspect --config run/config.yaml --weights weights

# Outputs that cannot be written are refused before any other file is read or written.
for job in "train $configs/reverse.yaml --out unwritable" "sweep none.yaml" 'eval none' 'inspect none' 'tasks none' \
  'gradcheck none' 'bench none' 'config show none' 'config cost none'; do
  refuse '^thimble: nowhere/a: cannot be written: No such file or directory; choose ' $job --json nowhere/a
done
refuse '^thimble: nowhere/a: cannot be written: ' inspect none --html nowhere/a
refuse '^thimble: nowhere/a: cannot be written: ' inspect none --svg nowhere/a
refuse '^thimble: nowhere/a: cannot be made: No such file' inspect none --npy nowhere/a
refuse '^thimble: run/config.yaml: cannot be made: ' inspect none --npy run/config.yaml
refuse '^thimble: sub: cannot be written: Is a directory' inspect run --html a.html --npy a --json a.json --svg sub
refuse '^thimble: : cannot be written' inspect run --json ''

# An error is wrapped at 80 columns on a terminal, and one line elsewhere.
expect 2 '.{81}' trace run "1 12"
on_terminal=$(script -qec "'$thimble' trace run '1 12'" /dev/null </dev/null | tr -d '\r') || true
! grep -E '.{81}' <<<"$on_terminal" || fail "an error is wider than a terminal" "$on_terminal"
[[ $(tr '\n' ' ' <<<"$on_terminal") == "$output " ]] || fail "a terminal gets another error" "$on_terminal"

printf 'model:\n  d_model: 30\n  heads: 4\n  d_modle: 3\n  d_model: 32\ntrain: {steps: many, batch: -1}\n' >bad.yaml
refuse 'bad.yaml: [0-9]+ problems' train bad.yaml
for place in 'bad.yaml:4:3: .*d_modle' 'bad.yaml:5:3: .*d_model' 'bad.yaml:6:16: .*steps' 'bad.yaml:6:29: .*batch'; do
  grep -qE "$place" <<<"$output" || fail "no report at $place" "$output"
done
: >empty.yaml
refuse 'empty.yaml' train empty.yaml
refuse 'a directory, not a config' train "$configs"
head -c 100 run/checkpoints/final.safetensors >cut.safetensors
refuse 'cut.safetensors: .*truncated' eval --config run/config.yaml --weights cut.safetensors

# A config that exceeds memory is refused by every job before memory is allocated.
for size in task.length=100000 model.d_model=1000000 train.batch=2147483647 model.layers=-1; do
  refuse "$size: must be" train "$configs/reverse.yaml" "$size"
done
huge=(model.d_model=8192 model.d_ff=65536 model.layers=128 train.shards=100)
about='this (config needs about|may need up to) [0-9.]+ [TP]iB of memory, but only .* is left:'
refuse "$about" train "$configs/reverse.yaml" "${huge[@]}" --out huge
refuse "$about" bench "$configs/reverse.yaml" "${huge[@]}"
refuse "$about" gradcheck "$configs/reverse.yaml" "${huge[@]}"
refuse "$about" eval run "${huge[@]}"
refuse "$about" inspect run "${huge[@]}" task.length=8192 model.heads=8192
grep -qE '^lower ' <<<"$output" || fail "no remedy" "$output"
! grep -qE '.{81}' <<<"$output" || fail "a refusal is wider than 80 columns" "$output"
expect 0 '^# memory, about +[0-9.]+ [TP]iB$' config show "$configs/reverse.yaml" "${huge[@]}"
if [[ $(ldd "$thimble") != *libasan* && $(ldd "$thimble") != *libtsan* ]]; then  # sanitizers need address space
  (ulimit -v 1500000 && refuse "$about" train "$configs/reverse.yaml" "${huge[@]}" --out huge)
  (ulimit -v 1500000 && refuse '3\.[0-9] GiB of memory, but only [0-9.]+ [MG]iB is left:' \
    train "$configs/reverse.yaml" --threads 2 model.d_model=4096)
  (ulimit -v 1500000 && expect 0 'test +loss' train "$configs/reverse.yaml" --threads 2 "${short[@]}" --out limited)
fi
if ((EUID != 0)); then
  mkdir sealed && chmod 555 sealed
  refuse 'sealed/run: cannot be created' train "$configs/reverse.yaml" --out sealed/run
fi
refuse 'bad.yaml/run: Not a directory' train "$configs/reverse.yaml" --out bad.yaml/run
echo "cli_test: ok"
