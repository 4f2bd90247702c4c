#!/usr/bin/env bash
# The program as seen from a shell: tests/cases/*.txt, each in a folder of its own, which is empty at first. Lines are
#   $ ARGUMENTS   a command of thimble, as bash reads it; lines below each other share what follows
#   % COMMAND     a command of bash, which must succeed; $output is what the last case has printed; lines with four spaces before
#                 them continue it
#   ~ REGEX       standard output has a line that matches
#   | TEXT        standard output has this line, below that of the | before it; ... in it stands for any text
#   - REGEX       no line that was printed matches
#   ! TEXT        standard error has this line; ... in it stands for any text, ... alone for further lines
#   ? STATUS      the exit status; without it 2 if standard error alone is described, else 0
#   @ [FILE] POINTER VALUE    JSON, in a file or on standard output, has this there, as `values` below prints it; ... as above
# With status 2 standard error has no other line, standard output none, and no file is new or changed.
# Usage: cases_test.sh THIMBLE_BINARY SOURCE_DIR [FILE...]
set -euo pipefail
files=()
for file in "${@:3}"; do files+=("$(realpath "$file")"); done
source "$(dirname "$0")/expect.sh" "$1" "$2"
flattened=${configs%/configs}/tests/scripts/values.awk
((${#files[@]} > 0)) || files=("${configs%/configs}"/tests/cases/*.txt)

state() { find . -type d -printf '%p\n' -o -printf '%p %s %T@\n' | sort; }
wrong() { fail "${case_file##*/}:$number: $1" "standard output:" "$(cat "$work/out")" "standard error:" "$(cat "$work/err")"; }

# values FILE POINTER: the values of a JSON file at a pointer such as /runs/*/exit, in which * is any key, or / for all, each
# without spaces, joined by spaces.
values() {
  local pointer=${2%/} key='([^/]|~1)*'
  awk -f "$flattened" "$1" | sed -nE "s#^${pointer//'*'/$key}\t##p" | paste -sd ' '
}

# is TEXT PATTERN: whether a text is another one, in which ... stands for any text.
is() {
  local pattern=${2//\\/\\\\}
  for special in '*' '?' '['; do pattern=${pattern//"$special"/"\\$special"}; done
  [[ $1 == ${pattern//.../*} ]]
}

# Whether a line of standard error is this text.
says() {
  local line
  while IFS= read -r line; do ! is "$line" "$1" || return 0; done <"$work/err"
  return 1
}

# Whether standard output has the lines of $table below each other.
shows_table() {
  local line at=0
  while IFS= read -r line; do
    if is "$line" "${table[at]}"; then at=$((at + 1)); elif is "$line" "${table[0]}"; then at=1; else at=0; fi
    ((at < ${#table[@]})) || return 0
  done <"$work/out"
  return 1
}

# refuses TEXT ARGUMENT...: the command says that and writes nothing; for commands in loops.
refuses() {
  local before got=0
  before=$(state)
  timeout 60 "$thimble" "${@:2}" </dev/null >"$work/out" 2>"$work/err" || got=$?
  ((got == 2)) && [[ ! -s $work/out && $(state) == "$before" ]] && is "$(cat "$work/err")" "thimble: $1"
}

# has [FILE] POINTER VALUE
has() {
  local file=$work/out pointer value
  [[ $1 == /* ]] || { file=${1%% *}; set -- "${1#* }"; }
  read -r pointer value <<<"$1"
  got_value=$(values "$file" "$pointer")
  is "$got_value" "$value"
}

check() {  # runs the commands that wait, and compares what they print with what is described
  local command before wanted=$status text got got_value
  if [[ -z $wanted ]]; then ((${#said[@]} > 0 && ${#printed[@]} + ${#table[@]} + ${#json[@]} == 0)) && wanted=2 || wanted=0; fi
  for command in "${commands[@]}"; do
    ((wanted != 2)) || before=$(state)
    got=0
    eval "set -- $command"
    "$thimble" "$@" </dev/null >"$work/out" 2>"$work/err" || got=$?
    output=$(cat "$work/out" "$work/err")
    ((got == wanted)) || wrong "thimble $command: exit status $got, not $wanted"
    for text in "${printed[@]}"; do grep -qE -- "$text" "$work/out" || wrong "thimble $command: does not print $text"; done
    ((${#table[@]} == 0)) || shows_table || wrong "thimble $command: does not print the table" "${table[@]}"
    for text in "${json[@]}"; do has "$text" || wrong "thimble $command: has no $text, but $got_value"; done
    for text in "${absent[@]}"; do ! grep -qE -- "$text" <<<"$output" || wrong "thimble $command: prints $text"; done
    for text in "${said[@]}"; do says "$text" || wrong "thimble $command: does not say $text"; done
    cases=$((cases + 1))
    ((got == 2)) || continue
    [[ ! -s $work/out ]] || wrong "thimble $command: prints something"
    [[ " ${said[*]} " == *' ... '* || $(wc -l <"$work/err") == "${#said[@]}" ]] || wrong "thimble $command: says more"
    [[ $(state) == "$before" ]] || wrong "thimble $command: it wrote something"
  done
  commands=() printed=() table=() json=() absent=() said=() status= described=
}

run_file() {
  local line lines commands=() printed=() table=() json=() absent=() said=() status= described=
  mapfile -t lines <"$case_file"
  for ((number = 1; number <= ${#lines[@]}; ++number)); do
    line=${lines[number - 1]}
    while [[ ${lines[number]:-} == '    '* ]]; do line+=$'\n'${lines[number++]}; done
    [[ -n $line && $line != '#'* ]] || continue
    if [[ $line == [\$%]\ * && -n $described ]]; then check; fi
    [[ $line != [~\|!?@-]\ * ]] || described=1
    case $line in
      '$ '* | '$') commands+=("${line:2}") ;;
      '% '*)
        ((${#commands[@]} == 0)) || wrong "a case that describes nothing"
        eval "${line:2}" || wrong "${line:2}: status $?"
        ;;
      '~ '*) printed+=("${line:2}") ;;
      '| '* | '|') table+=("${line:2}") ;;
      '@ '*) json+=("${line:2}") ;;
      '- '*) absent+=("${line:2}") ;;
      '! '*) said+=("${line:2}") ;;
      '? '*) status=${line:2} ;;
      *) wrong "not a line of a case: $line" ;;
    esac
  done
  [[ -n $described ]] || ((${#commands[@]} == 0)) || wrong "a case that describes nothing"
  check
}

: >"$work/out" >"$work/err"
total=0
for case_file in "${files[@]}"; do
  number=0 cases=0
  mkdir "$work/$(basename "$case_file" .txt)" && cd "$_"
  run_file
  ((cases > 0)) || fail "$case_file: has no case"
  total=$((total + cases))
done
echo "cases_test: ok ($total cases)"
