#!/usr/bin/env bash
# The program as seen from a shell: tests/cases/*.txt, each in a folder of its own, which is empty at first. Lines are
#   $ ARGUMENTS   a command of thimble, as bash reads it; lines below each other share what follows
#   % COMMAND     a command of bash, which must succeed; $output is what the last case has printed
#   ~ REGEX       standard output has a line that matches
#   - REGEX       no line that was printed matches
#   ! TEXT        standard error has this line; ... in it stands for any text, ... alone for further lines
#   ? STATUS      the exit status; without it 2 if standard error alone is described, else 0
# With status 2 standard error has no other line, standard output none, and no file is new or changed.
# Usage: cases_test.sh THIMBLE_BINARY SOURCE_DIR [FILE...]
set -euo pipefail
files=()
for file in "${@:3}"; do files+=("$(realpath "$file")"); done
source "$(dirname "$0")/expect.sh" "$1" "$2"
((${#files[@]} > 0)) || files=("${configs%/configs}"/tests/cases/*.txt)

state() { find . -type d -printf '%p\n' -o -printf '%p %s %T@\n' | sort; }
wrong() { fail "${case_file##*/}:$number: $1" "standard output:" "$(cat "$work/out")" "standard error:" "$(cat "$work/err")"; }

# Whether a line of standard error is this text.
says() {
  local line pattern=${1//\\/\\\\}
  for special in '*' '?' '['; do pattern=${pattern//"$special"/"\\$special"}; done
  while IFS= read -r line; do [[ $line != ${pattern//.../*} ]] || return 0; done <"$work/err"
  return 1
}

check() {  # runs the commands that wait, and compares what they print with what is described
  local command before wanted=$status text got
  if [[ -z $wanted ]]; then ((${#said[@]} > 0 && ${#printed[@]} == 0)) && wanted=2 || wanted=0; fi
  for command in "${commands[@]}"; do
    ((wanted != 2)) || before=$(state)
    got=0
    eval "set -- $command"
    "$thimble" "$@" </dev/null >"$work/out" 2>"$work/err" || got=$?
    output=$(cat "$work/out" "$work/err")
    ((got == wanted)) || wrong "thimble $command: exit status $got, not $wanted"
    for text in "${printed[@]}"; do grep -qE -- "$text" "$work/out" || wrong "thimble $command: does not print $text"; done
    for text in "${absent[@]}"; do ! grep -qE -- "$text" <<<"$output" || wrong "thimble $command: prints $text"; done
    for text in "${said[@]}"; do says "$text" || wrong "thimble $command: does not say $text"; done
    cases=$((cases + 1))
    ((got == 2)) || continue
    [[ ! -s $work/out ]] || wrong "thimble $command: prints something"
    [[ " ${said[*]} " == *' ... '* || $(wc -l <"$work/err") == "${#said[@]}" ]] || wrong "thimble $command: says more"
    [[ $(state) == "$before" ]] || wrong "thimble $command: it wrote something"
  done
  commands=() printed=() absent=() said=() status= described=
}

run_file() {
  local line commands=() printed=() absent=() said=() status= described=
  while IFS= read -r line; do
    number=$((number + 1))
    [[ -n $line && $line != '#'* ]] || continue
    if [[ $line == [\$%]\ * && -n $described ]]; then check; fi
    [[ $line != [~!?-]\ * ]] || described=1
    case $line in
      '$ '* | '$') commands+=("${line:2}") ;;
      '% '*)
        ((${#commands[@]} == 0)) || wrong "a case that describes nothing"
        eval "${line:2}" || wrong "${line:2}: status $?"
        ;;
      '~ '*) printed+=("${line:2}") ;;
      '- '*) absent+=("${line:2}") ;;
      '! '*) said+=("${line:2}") ;;
      '? '*) status=${line:2} ;;
      *) wrong "not a line of a case: $line" ;;
    esac
  done <"$case_file"
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
