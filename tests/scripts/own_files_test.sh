#!/usr/bin/env bash
# Files as people have them: what is read is said, and every remedy that a message names helps.
# Usage: own_files_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

echo '{}' >empty.yaml
small=(empty.yaml task.name=file model.output.per=sequence model.d_model=8 train.batch=32 train.steps=40)
# said PATTERN: requires that the last output, without its line breaks, matches.
said() { grep -qE -- "$1" <<<"$(tr '\n' ' ' <<<"$output")" || fail "no match for $1 in" "$output"; }
silent() { ! grep -qE -- "$1" <<<"$(tr '\n' ' ' <<<"$output")" || fail "still there: $1" "$output"; }

# A sorted file is read whole; a number of lines is a sample of all of them.
for a in {a..y}; do for b in {a..z}; do printf '%s %s x\t%s\n' "$a" "$b" "$([[ $a < m ]] && echo early || echo late)"; done; done >sorted.tsv
expect 0 '^trains on all 5[0-9][0-9] lines; 40 steps of 32 read each 2\.[0-9] times$' train "${small[@]}" task.file=sorted.tsv --out whole
said 'an evaluation reads all [0-9]+ validation lines, the work of about 1 training steps'
grep -q '^  train: all$' whole/config.yaml || fail "not all" "$(cat whole/config.yaml)"
expect 0 "$(grep -o '^weights  *[0-9a-f]*' <<<"$output")" train whole/config.yaml --out again
expect 0 'trains on 100 of 5[0-9][0-9] lines; .* read each 12.8 times' train "${small[@]}" task.file=sorted.tsv data.train=100 data.validation=20 --out some
said 'an evaluation reads 20 of [0-9]+ validation lines'
expect 0 'task.file|data.train|data.validation' compare whole some --sequences 9
said 'data.train'
expect 0 '^20 of [0-9]+ test sequences, a random sample: loss' inspect whole --sequences 20
expect 0 'read [0-9]+ % of them, once; an epoch, all( but [0-9]+)? of them, is train.steps=[0-9]+' train "${small[@]}" task.file=sorted.tsv train.steps=5 --out few
steps=$(grep -o 'train.steps=[0-9]*' <<<"$output")
expect 0 'read 9[0-9] % of them, once; an epoch' train "${small[@]}" task.file=sorted.tsv "$steps" --out enough
refuse 'data.train=0: 0 requires a task that generates sequences; set data.train to all' train "${small[@]}" task.file=sorted.tsv data.train=0
expect 0 '^trains on all' train "${small[@]}" task.file=sorted.tsv data.train=all --out all
refuse 'data.test=all: all requires a data file, which task reverse has not; set a number' train "$configs/reverse.yaml" data.test=all

# Logical forms, whose _ is a token.
for ((i = 0; i < 60; ++i)); do printf 'w%d\tf ( x _ %d )\n' $i $((i % 3)); done >forms.tsv
next=(empty.yaml task.name=file task.file=forms.tsv model.output.per=next model.attention.mask=causal train.steps=2 train.batch=8)
refuse 'forms.tsv:1: a position without an answer: .*; if _ is a token here, set task.no_answer="", or write \\_ for it \(and 59 more' train "${next[@]}"
expect 0 '^test +loss' train "${next[@]}" task.no_answer= --out forms
sed 's/ _ / \\_ /' forms.tsv >escaped.tsv
expect 0 '^test +loss' train "${next[@]}" task.file=escaped.tsv --out escaped
expect 0 'x _ ' tasks file task.file=escaped.tsv

# The longest input and the longest target are equally long, and of different lines.
for ((i = 0; i < 60; ++i)); do ((i % 2)) && printf 'w%d b\tc\n' $i || printf 'w%d\tc d\n' $i; done >mixed.tsv
expect 0 '^answer ' tasks file task.file=mixed.tsv

# What a remark names, helps.
{ printf 'text\tlabel\n' && cat sorted.tsv; } >header.tsv
expect 0 '^note: .*header.tsv:1: the first line may be a header' tasks file task.file=header.tsv
expect 0 '^answer ' tasks file task.file=header.tsv task.header=true
silent 'may be a header'
sed 's/^\(.*\)\t\(.*\)$/"\1"\t"\2"/' sorted.tsv >quoted.tsv
expect 0 'every field is in quotes' tasks file task.file=quoted.tsv
said "set task.format=csv task.separator='\"\\\\t\"'"
expect 0 '^input +[a-z] [a-z] x$' tasks file task.file=quoted.tsv task.format=csv task.separator='"\t"'
sed 's/^\(.\) \(.\) x/w\1\2/' sorted.tsv >spelled.tsv
expect 0 'occur once: are they separated by spaces' tasks file task.file=spelled.tsv
said 'set task.input_tokens=characters'
expect 0 '^input +w [a-z] [a-z]$' tasks file task.file=spelled.tsv task.input_tokens=characters
silent 'occur once'
{ cat sorted.tsv && printf 'a%.0s ' {1..60} && printf '\tlate\n'; } >long.tsv
expect 0 'the longest sequence has 60 tokens, 99 % of the' tasks file task.file=long.tsv
keep=$(tr '\n' ' ' <<<"$output" | grep -o 'task.max_tokens=[0-9]*')
expect 0 '1 line with more than task.max_tokens=3 tokens is left out' tasks file task.file=long.tsv "$keep"
silent 'longest sequence'

# Files that are no UTF-8: the command that the message names.
{ printf '\xff\xfe' && iconv -f UTF-8 -t UTF-16LE sorted.tsv; } >wide.tsv
gzip -c sorted.tsv >packed.tsv
{ printf '\xef\xbb\xbf' && cat sorted.tsv; } >mark.tsv
expect 0 "$("$thimble" tasks file task.file=sorted.tsv | grep '^vocabulary')" tasks file task.file=mark.tsv
expect 2 "wide.tsv: UTF-16; convert it: iconv -f UTF-16 -t UTF-8 .*wide.tsv > NEW" tasks file task.file=wide.tsv
command=$(grep -o 'iconv .*' <<<"$output")
eval "${command/NEW/new.tsv}"
cmp new.tsv sorted.tsv
expect 2 "packed.tsv: compressed by gzip; unpack it: gunzip < .*packed.tsv > NEW" tasks file task.file=packed.tsv
command=$(grep -o 'gunzip .*' <<<"$output")
eval "${command/NEW/new.tsv}"
cmp new.tsv sorted.tsv
HOME=$work expect 0 '^vocabulary' tasks file 'task.file=~/sorted.tsv'
# shellcheck disable=SC2016
refuse '\$HOME is not' tasks file 'task.file=$HOME/sorted.tsv'

# Typed input is read as the file is; unknown tokens are named.
spelled=("${small[@]}" task.file=spelled.tsv task.input_tokens=characters)
expect 0 '^test +loss' train "${spelled[@]}" --out spelled
expect 0 '^token +w a b$' trace spelled wab
refuse 'input: there is no token .; .* trained with task.min_count or task.vocabulary=training has <unk>' trace spelled 'wa.'
expect 0 '^test +loss' train "${spelled[@]}" task.vocabulary=training --out unknown
expect 0 '^token +w a <unk>$' trace unknown 'wa.'
expect 0 '^test +loss' eval unknown
refuse 'vocabulary_file lists all tokens' train "${spelled[@]}" task.min_count=3 task.vocabulary_file=spelled.tsv

# A run whose lines were divided by another rule.
python=$(command -v /usr/bin/python3 || command -v python3 || true)
if [[ -n $python ]]; then
  "$python" -c 'import json; p = "again/data.json"; d = json.load(open("whole/data.json")); d.pop("split_rule"); json.dump(d, open(p, "w"))'
  refuse 'its splits were made by the hash of the token ids, .*; train it again' eval again
  expect 0 '^trains on all' train again/config.yaml --out third
fi
echo "own files: read whole, and every remedy helps"
