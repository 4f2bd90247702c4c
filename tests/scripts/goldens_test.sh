#!/usr/bin/env bash
# Published results and what configs promise, on one seed each, inside their bands, and controls that must fail.
# What README and docs have trained into RUNS is measured there; what is missing is trained.
# Usage: goldens_test.sh THIMBLE_BINARY SOURCE_DIR [RUNS]
set -euo pipefail
thimble=$(realpath "$1")
configs=$(realpath "$2")/configs

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=$(realpath -m "${3:-$work/runs}")
cd "$work"

fail() {
  echo "goldens_test: $1" >&2
  exit 1
}
# The first number of that key after a line that matches; JSON has a key a line.
number() { awk -v at="$2" -v key="\"$3\":" '$0 ~ at { found = 1 } found && index($0, key) { print $2 + 0; exit }' "$1"; }
holds() { awk "BEGIN { exit !($1) }" || fail "$2: $1 does not hold"; }
metric() { grep "\"step\":$2,\"split\":\"validation\"" "$1/metrics.jsonl" | sed 's/.*"loss":\([^,]*\),.*/\1/'; }
# Links NAME to the run of a config; --resume goes no step beyond a finished run, and refuses one of another config.
trained() {  # NAME CONFIG RUN
  "$thimble" train "$configs/$2.yaml" --out "$runs/$3" --resume --quiet
  ln -s "$runs/$3" "$1"
}

trained reverse reverse reverse
"$thimble" inspect reverse --json reverse.json --quiet
holds "$(number reverse/summary.json '"test"' accuracy) >= 0.9999" "reverse, test accuracy"
holds "$(number reverse.json '"mirror": {' value) >= 0.5" "reverse, mirror score"
# Labels of a layer's heads, those that are shown; HEADS is what inspect printed.
named() { grep -qE "^head $2\.[0-9]+: $3: " "$1" || fail "no head of layer $2 is called $3: $(cat "$1")"; }
"$thimble" inspect reverse --details >heads
named heads 0 mirror

# Evaluation changes no weights, so only what the bands read is evaluated.
"$thimble" train "$configs/induction.yaml" train.evaluate_every=70 data.test=300 --out induction --quiet
holds "$(metric induction 490) <= 2.06 && $(metric induction 490) >= 2.0123" "induction, loss at step 490"
# Rounds of one length allow a fixed distance in place of induction, and that is what forms.
"$thimble" inspect induction --details >heads
named heads 1 'offset -15'
! grep -q ': induction: ' heads || fail "a fixed distance is called induction: $(cat heads)"

trained two induction_lengths induction
holds "$(number two/summary.json '"validation"' accuracy) >= 0.4" "two layers, the target that one must miss"
"$thimble" inspect two --details >heads
named heads 0 'previous token'
named heads 1 induction
grep -q '^head 1\.[01] became an induction head between steps' heads || fail "not said when: $(cat heads)"

# The heads that link a pronoun to its noun, and what is lost without them.
trained coreference coreference it
"$thimble" inspect coreference --heads '1.*' --details >heads
grep -qE 'head 1\.[01]: task target( \(referent\))?: [^;]*; ablating it costs' <(tr '\n' ' ' <heads) ||
  fail "no head links pronouns to nouns: $(cat heads)"
# Attends to both nouns alike.
"$thimble" inspect coreference --heads 0.0 --details >heads
! grep -q 'task target' <(grep -A9 '^head 0.0: ' heads) || fail "any noun is called the right one: $(cat heads)"

# Encoder-decoder models, given nothing but the source, and the heads that align English words with French ones.
trained translation translation translation
trained translation_recurrent translation_recurrent recurrent
trained dates dates dates
for task in translation translation_recurrent dates; do
  holds "$(number $task/summary.json '"test"' exact_match) >= 0.99" "$task, outputs generated correctly"
done
for task in translation translation_recurrent; do
  "$thimble" inspect $task --details >heads
  grep -qE 'head cross\.0\.[01]: task target: [^;]*; ablating it costs' <(tr '\n' ' ' <heads) ||
    fail "$task: no head aligns words: $(cat heads)"
  "$thimble" generate $task --input 'le chien noir a mangé un biscuit' >generated
  grep -q '^0\.[0-9]*  the black dog ate a biscuit$' generated || fail "$task translated: $(cat generated)"
done

# Controls, shortened.
status=0
"$thimble" train "$configs/controls/induction_one_layer.yaml" train.steps=1000 train.evaluate_every=500 data.test=300 --out one --quiet 2>said || status=$?
((status == 1)) || fail "one layer does induction: exit status $status"
grep -q 'train.target was not reached' said || fail "a missed target is not said: $(cat said)"
status=0
"$thimble" train "$configs/controls/parity.yaml" train.steps=300 train.evaluate_every=150 --out parity --quiet 2>/dev/null || status=$?
((status == 1)) || fail "parity: exit status $status"
"$thimble" eval parity task.min_length=41 task.length=100 --quiet --json parity.json
holds "$(number parity.json '"test"' accuracy) < 0.6" "parity of 41 to 100 bits"

echo "goldens_test: ok"
