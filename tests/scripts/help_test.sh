#!/usr/bin/env bash
# Help texts, remedies that messages name, and the man page.
# Usage: help_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

# Every command has a help text in 80 columns, without internals of the parser.
commands=('' $("$thimble" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p') 'config show' 'config cost' 'config schema')
((${#commands[@]} >= 14)) || fail "--help lists fewer commands than there are" "${commands[*]}"
for command in "${commands[@]}"; do
  expect 0 "^Usage: thimble${command:+ $command}" $command --help
  ! grep -E '.{81}' <<<"$output" || fail "thimble $command --help is wider than 80 columns" "$output"
  ! grep -E ':[A-Z{]|REQUIRED|Excludes|Needs|INT|TEXT:| x [0-9]|\{.*\}|SUBCOMMAND|POSITIONAL' <<<"$output" ||
    fail "thimble $command --help shows internals" "$output"
  ! grep -E '^[^ ].*:$' <<<"$output" | grep -vxE '(Commands|Arguments|Options|Model|Analysis|Output|Report of --html):' ||
    fail "thimble $command --help has another heading" "$output"
  grep -q '^  -h, --help ' <<<"$output" || fail "thimble $command --help does not name --help" "$output"
  grep -q '^Exit status: 0' <<<"$output" || fail "thimble $command --help does not name exit statuses" "$output"
done
expect 0 '^  --split NAME +Split to print, .*' tasks --help
[[ $(tr -s ' \n' ' ' <<<"$output") == *'one of train, validation, test, varied [train]'* ]] || fail "no choices, or no default" "$output"
expect 0 '^Usage: thimble train CONFIG \[key=value \.\.\.\] \[options\]$' train --help
expect 0 ' \[1000\]$' inspect --help

# A remedy is a command line that works: a key as an option, one without its section, weights as a run, a config as a sweep.
remedy() {  # PATTERN ARGUMENT...: the pattern ends with (WORDS) to put in place of the last argument
  refuse "$@"
  [[ $output =~ $1 ]]
  remedied=("${@:2:$#-2}" ${BASH_REMATCH[1]})
}
remedy 'unknown option --model\.heads=2; a config key has no dashes: (model\.heads=2); see thimble config show --help' \
  config show reverse --model.heads=2
expect 0 '  heads: 2 ' "${remedied[@]}"
remedy 'positions=alibi: unknown key, did you mean (model\.positions)\?' config show reverse positions=alibi
expect 0 '  positions: alibi ' "${remedied[@]}=alibi"
short=(train.steps=2 train.schedule.warmup=1 data.validation=10 data.test=10)
"$thimble" train reverse "${short[@]}" train.steps=200 --out runs/reverse --quiet
weights=runs/reverse/checkpoints/final.safetensors
remedy "^thimble: $weights: is named like a file of weights, and no run directory; give (--weights $weights)\$" eval "$weights"
expect 0 '^test ' "${remedied[@]}"
refuse '^thimble: 0 1: .*: (--clean 0 --corrupted 1)$' patch runs/reverse 0 1
[[ $output =~ (--clean .*) ]]
expect 0 '^clean ' patch runs/reverse ${BASH_REMATCH[1]}
refuse 'reverse.yaml:1:1: is a config, not a sweep; thimble train .*reverse.yaml trains it, a sweep has config: ' sweep reverse
[[ $output =~ (thimble train [^ ]*) ]]
expect 0 '^test ' ${BASH_REMATCH[1]#thimble } "${short[@]}" --out again
refuse 'a sweep has (config: .*reverse.yaml)$' sweep reverse
echo "${output##*a sweep has }" >sweep.yaml
expect 0 '^sweep swept' sweep sweep.yaml "${short[@]}" --out swept

# The help of a command is also that of thimble help; the pages about heads have an example each, and fit a screen.
for command in train 'config show' ''; do
  expect 0 '^Usage: ' help $command
  diff <("$thimble" $command --help) - <<<"$output" || fail "thimble help $command is another text"
done
for command in inspect trace patch ablate; do
  expect 0 "^Example: thimble $command runs/" $command --help
  (($(wc -l <<<"$output") <= 44)) || fail "thimble $command --help is longer than a screen" "$output"
  eval "set -- $(sed -n 's/^Example: thimble //p' <<<"$output")"
  expect 0 '' "$@"
done

# The man page has every command and option, and only valid markup.
"$thimble" manual >thimble.1
for command in "${commands[@]}"; do
  grep -qF ".SS thimble $command" thimble.1 || [[ -z $command ]] || fail "the manual lacks $command"
  for option in $("$thimble" $command --help | grep -oE '^  --[a-z]+'); do
    grep -qF "\\-\\-${option#--}" thimble.1 || [[ $option == --version ]] || fail "the manual lacks $option of $command"
  done
done
if command -v groff >/dev/null; then
  complaints=$(groff -man -ww -Tutf8 thimble.1 2>&1 >page)
  [[ -z $complaints ]] || fail "groff complains about the manual" "$complaints"
  # No pipe into grep -q: with pipefail it fails when grep exits before sed has written everything.
  grep -qE '^ +--threads N' <(sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g' page) || fail "no --threads in the page" "$(cat page)"
fi
echo "help_test: ok"
