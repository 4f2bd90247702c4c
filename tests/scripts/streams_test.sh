#!/usr/bin/env bash
# Standard streams that are closed or full, and hostile input: failed writes are reported, training outlives its log, and
# no text from outside controls the terminal.
# Usage: streams_test.sh THIMBLE_BINARY SOURCE_DIR [all]   (default: without the progress of work that takes seconds)
set -euo pipefail
source "$(dirname "$0")/expect.sh" "$@"

short=(train.steps=20 train.schedule.warmup=5 data.validation=100 data.test=100 --threads 1)
train() { "$thimble" train "$configs/reverse.yaml" "${short[@]}" "$@"; }
status_of() { local status=0; "$@" || status=$?; echo $status; }

# A closed stream: no file of the run gets its descriptor.
train --out whole 2>/dev/null >/dev/null
(train --out closed 2>&- >/dev/null) || fail "training without standard error: status $?"
(train --out all_closed --quiet <&- >&- 2>&-) || fail "training without any stream: status $?"
hash() { sed -n 's/.*"weights_hash": "\([0-9a-f]*\)".*/\1/p' "$1/summary.json"; }
for run in closed all_closed; do
  ! grep -qv '^{.*}$' $run/metrics.jsonl || fail "$run: other text among the metrics" "$(cat $run/metrics.jsonl)"
  [[ -n $(hash whole) && $(hash $run) == "$(hash whole)" ]] || fail "$run: other weights"
done

# Standard output that cannot be written: every command reports it in one line.
for command in tasks 'tasks reverse' --help --version 'train --help' 'config schema' "config show $configs/reverse.yaml" \
  "config cost $configs/reverse.yaml --json -" 'tasks --json -' 'gradcheck --op relu' 'eval whole' 'eval whole --json -' \
  'inspect whole --sequences 10' 'inspect whole --sequences 10 --json -' "bench $configs/bench/micro.yaml --steps 1" \
  'reproduce --list --experiments '"$configs/reproduce"; do
  for target in '>/dev/full' '>&-'; do
    status=$(status_of bash -c "'$thimble' $command $target 2>err")
    [[ $status == 2 ]] || fail "thimble $command $target: status $status, not 2" "$(cat err)"
    [[ $(grep -c 'thimble: standard output: cannot be written: ' err) == 1 ]] ||
      fail "thimble $command $target: not one line about standard output" "$(cat err)"
  done
done
train --out unread >/dev/full 2>err && fail "train >/dev/full: status 0"
[[ $(tail -n 1 err) == "thimble: standard output: cannot be written: "* ]] || fail "train >/dev/full" "$(cat err)"
[[ $(hash unread) == "$(hash whole)" ]] || fail "train >/dev/full: other weights, or none"

# A closed pipe ends the program without a message.
status=0
{ "$thimble" config schema 2>err || echo $? >status; } | true
! [[ -s err ]] || fail "a closed pipe gives a message" "$(cat err)"

# What is no regular file is written to: with names of standard output the same as with -, whatever it is, without
# loss of what is there.
"$thimble" eval whole --json - >wanted
same() { cmp "$1" wanted || fail "$2: not the result"; }
"$thimble" eval whole --json /dev/stdout | same - '/dev/stdout, a pipe'
{ echo before; "$thimble" eval whole --json /dev/stdout; echo after; } >kept
same <(sed '1d;$d' kept) '/dev/stdout, a file'
[[ $(sed -n '1p;$p' kept | xargs) == 'before after' ]] || fail "/dev/stdout loses what was printed before" "$(cat kept)"
"$thimble" eval whole --json named >named
same named 'a file that is standard output'
"$thimble" eval whole --predictions /dev/fd/1 --quiet >predictions
"$thimble" eval whole --predictions - | cmp - predictions || fail "--predictions - differs from --predictions /dev/fd/1"
"$thimble" eval whole --json /dev/stderr --quiet 2>err && same err /dev/stderr
echo before >log
"$thimble" eval whole --json /dev/fd/3 3>>log >/dev/null
same <(tail -n +2 log) '/dev/fd/3, a file'
"$thimble" eval whole --json >(cat >substituted; touch done) >/dev/null
until [[ -e done ]]; do sleep 0.1; done
same substituted '>(command)'
script -qec "'$thimble' eval whole --quiet --json /dev/tty" /dev/null </dev/null | tr -d '\r' | same - 'the terminal'
"$thimble" inspect whole --sequences 10 --json /dev/null --html /dev/null --heads 0.0 >/dev/null ||
  fail "/dev/null: status $?"
for target in /dev/full '/dev/stdout >&-' '/dev/fd/9'; do
  status=$(status_of bash -c "'$thimble' eval whole --quiet --json $target 2>err")
  [[ $status == 2 && $(cat err) == "thimble: ${target%% *}: cannot be written: "* ]] || fail "--json $target: status $status" "$(cat err)"
done

# A named pipe is opened for the result only: a mistake is reported at once, and the work is done when it has no reader.
mkfifo pipe
status=$(status_of timeout 60 "$thimble" eval none --json pipe 2>err)
[[ $status == 2 ]] || fail "--json pipe of a wrong command: status $status" "$(cat err)"
train --out piped --quiet --json pipe & job=$!
until [[ -s piped/summary.json ]]; do sleep 0.1; done
timeout 60 cat pipe >got
wait $job || fail "--json pipe: status $?"
grep -qF "$(hash whole)" got || fail "--json pipe: no result" "$(cat got)"
exec 5> >(true)
wait $!
status=$(status_of "$thimble" eval whole --quiet --json /dev/fd/5 2>err 5>&5)
[[ $status == 141 && ! -s err ]] || fail "a pipe without a reader: status $status" "$(cat err)"
exec 5>&-

# Standard error that cannot be written loses the messages, but not the result or the status.
train --out full 2>/dev/full >/dev/null || fail "training with a full log: status $?"
train --out gone 2> >(true) >/dev/null || fail "training with a log whose reader has gone: status $?"
[[ $(hash full) == "$(hash whole)" && $(hash gone) == "$(hash whole)" ]] || fail "other weights with a full log"
for command in frobnicate 'train none.yaml' 'eval none' 'train --threads x' config; do
  status=$(status_of bash -c "'$thimble' $command 2>/dev/full")
  [[ $status == 2 ]] || fail "thimble $command 2>/dev/full: status $status, not 2"
done

# Work shows its share and the time left after 2 s and 4 s, unless it is quiet.
shows_progress() {
  local begin=$SECONDS jobs long=("$thimble" bench "$configs/bench/micro.yaml" --steps 100000000 --threads 1)
  "${long[@]}" --quiet 2>quiet & jobs=$!
  "${long[@]}" 2>shown & jobs+=" $!"
  "$thimble" train "$configs/reverse.yaml" train.steps=100000000 --threads 1 --out endless 2>steps & jobs+=" $!"
  until (($(wc -l <shown) >= 2 || SECONDS > begin + 60)); do sleep 0.1; done
  kill $jobs
  wait $jobs || true
  (($(grep -cE '^timing steps: [0-9]+ %, [0-9]+ h [0-9]+ min left$' shown) >= 2)) ||
    fail "no progress in a minute" "$(cat shown)"
  grep -qE '^step [0-9]+/100000000 .* h [0-9]+ min left$' steps || fail "training does not show the time left" "$(cat steps)"
  [[ ! -s quiet ]] || fail "--quiet shows progress" "$(cat quiet)"
}
[[ ${3:-} != all ]] || shows_progress

# Text from outside is escaped: C0 and C1 controls, changes of direction, characters without width, and bytes that are
# not UTF-8, printed by every command, on a terminal and elsewhere.
evil=$'\u009b31m\u009d0;title\u0007\u202e\u2066x\u061c\u200f\u200b\ufeff\u00ad'
folder=$'\u202e\u2066\u200bx'  # a path in a config has no control characters
line=$'\u009b31m\u202e\u2066\u200bx'  # valid in data
raw=$'\x9b31m\xff'
harmless() {  # FILE WHAT
  ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xef\xbb\xbf|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xd8\x9c|(?<![\xc2-\xf4\x80-\xbf])[\x80-\xbf]' "$1" ||
    fail "$2: characters that steer a terminal" "$(cat -v "$1")"
}
shown=0
hostile() {  # ARGUMENT...
  "$thimble" "$@" >printed 2>&1 </dev/null || true
  harmless printed "thimble $(printf '%q ' "$@")"
  ! grep -qE '\\[ux]\{(9b|9d|202e|2066|7|ff)\}' printed || shown=$((shown + 1))
}
for text in "$evil" "$raw"; do
  hostile "$text"
  hostile "--$text"
  hostile train "$text"
  hostile train "$configs/reverse.yaml" "$text"
  hostile train "$configs/reverse.yaml" "$text=1"
  hostile train "$configs/reverse.yaml" "task.name=$text"
  hostile train "$configs/reverse.yaml" "train.steps=$text"
  hostile train "$configs/reverse.yaml" --threads "$text"
  hostile train "$configs/reverse.yaml" --json "$text/none"
  hostile train "$configs/reverse.yaml" "--$text"
  hostile train "$configs/reverse.yaml" "${short[@]}" --out "$text" --quiet
  hostile train "$configs/reverse.yaml" "${short[@]}" --out "run$text"
  hostile train "run$text" --resume
  hostile eval "$text"
  hostile eval whole --checkpoint "$text"
  hostile eval whole --split "$text"
  hostile eval --config "$text" --weights "$text"
  hostile trace whole "1 $text"
  hostile inspect whole --heads "$text"
  hostile inspect whole --html "$text/none"
  hostile generate "$text" --input 1
  hostile gradcheck --op "$text"
  hostile gradcheck "$text"
  hostile bench "$text"
  hostile tasks "$text"
  hostile tasks reverse "$text=2"
  hostile tasks --config "$text"
  hostile config "$text"
  hostile config show "$text"
  hostile config show "$configs/reverse.yaml" "data.$text=1"
  hostile sweep "$text"
  hostile reproduce "$text" --experiments "$configs/reproduce"
  hostile reproduce --experiments "$text"
done
((shown >= 40)) || fail "hostile text was shown in $shown messages only"

# Tokens, keys and the like in files.
mkdir -p "d$folder"
for i in {1..40}; do printf 'a%s b %s\tyes%s\n' "$line" "$i" "$line"; printf 'c d %s\tno\n' "$i"; done >"d$folder/data.tsv"
cat >"d$folder/words.yaml" <<YAML
task: {name: file, file: data.tsv}
model: {d_model: 8, heads: 1, layers: 1, d_ff: 8, output: {per: sequence}}
train: {steps: 5, batch: 8, shards: 1, schedule: {warmup: 1}}
YAML
hostile train "d$folder/words.yaml" --out words
[[ -s words/summary.json ]] || fail "the hostile tokens were not trained on" "$(cat printed)"
hostile eval words
hostile inspect words --sequences 5
hostile trace words "a$line b 1"
hostile trace words "a b 1"
hostile patch words --clean 0 --corrupted 1
hostile tasks --config "d$folder/words.yaml"
grep -q '\\u{9b}31m' printed || fail "the tokens are not shown" "$(cat printed)"
hostile tasks file "task.file=d$folder/data.tsv"
hostile config show "d$folder/words.yaml"
printf 'model: {"%s": 1}\ntrain: {steps: "%s"}\n"%s": 3\n' "$line" "$line" "$line" >keys.yaml
hostile train keys.yaml
hostile config show keys.yaml
printf 'base: "%s"\n' "$line" >base.yaml
hostile train base.yaml
printf 'config: keys.yaml\nseeds: 1\ngrid: {"%s": [1]}\n' "$line" >sweep.yaml
hostile sweep sweep.yaml
for command in 'trace words "a'"$line"' b 1"' 'inspect words --sequences 5' "frob'$evil'" "eval '$evil'"; do
  TERM=xterm NO_COLOR=1 script -qec "'$thimble' $command" /dev/null </dev/null 2>&1 | sed 's/\x1b\[K//g' | tr -d '\r' >printed || true
  harmless printed "thimble $command on a terminal"
  [[ -s printed ]] || fail "thimble $command on a terminal: nothing"
done

# JSON has the same text with escapes.
"$thimble" tasks --config "d$folder/words.yaml" --examples 40 --json tokens.json --quiet
grep -qF 'a\u009b31m\u202e\u2066\u200bx' tokens.json || fail "the token is not in the JSON" "$(head -30 tokens.json)"
"$thimble" tasks --config "d$folder/words.yaml" --examples 40 --json - | cmp - tokens.json || fail "--json - differs from --json FILE"
echo "streams_test: ok"
