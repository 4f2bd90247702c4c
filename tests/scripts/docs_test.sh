#!/usr/bin/env bash
# Runs the commands that pages show (their ```sh blocks), page after page in one folder that looks like the source tree,
# so that what people are told to type works, and two pages do not train into the same run. Of commands that install,
# build or test, which other checks run for real, only the script or preset they name must exist; a command with the
# placeholder NAME is not run either. The folder is emptied at the start and keeps its runs.
# Usage: docs_test.sh THIMBLE_BINARY SOURCE_DIR FOLDER PAGE...
set -euo pipefail
binary=$(realpath "$1")
source=$(realpath "$2")
folder=$3
shift 3

rm -rf "$folder"
mkdir -p "$folder/build/release"
for entry in "$source"/*; do
  case ${entry##*/} in
    build | runs) ;;
    *) ln -s "$entry" "$folder/" ;;
  esac
done
ln -s "$binary" "$folder/build/release/thimble"
cd "$folder"
export PATH="$PWD/build/release:$PATH"

# LINE<tab>COMMAND of a page, continuation lines joined, comments left out.
commands() {
  awk '
    /^[ ]*```/ { inside = !inside && /^[ ]*```sh[ ]*$/; next }
    !inside { next }
    { if (command == "") line = NR; command = command $0 }
    sub(/\\$/, "", command) { next }
    command !~ /^[ ]*(#|$)/ { printf "%d\t%s\n", line, command }
    { command = "" }' "$1"
}

fail() {
  echo "$page:$line: $1: $command" >&2
  exit 1
}

# Of `--preset NAME` and of build/NAME/PROGRAM.
presets_exist() {
  local name
  for name in $(grep -oE -- '(--preset[ =]|^build/)[a-z]+' <<<"$1" | sed 's/.*[ =/]//'); do
    grep -qE "\"name\": *\"$name\"" CMakePresets.json || return 1
  done
}

run() {
  local output status=0
  output=$(bash -euo pipefail -c "$command" </dev/null 2>&1) || status=$?
  ((status == 0)) || { tail -n 50 <<<"$output" >&2; fail "exit status $status"; }
  ran=$((ran + 1))
}

ran=0
for page in "$@"; do
  shown=0
  while IFS=$'\t' read -r line command; do
    shown=$((shown + 1))
    read -r program argument _ <<<"$command"
    case $command in
      'docker '*) [[ -f $source/Dockerfile ]] || fail "no Dockerfile" ;;
      'git '* | 'cd '* | 'sudo '* | 'apt '* | 'apt-get '*) ;;
      scripts/* | .ci/*) [[ -x $source/$program ]] || fail "no such script" ;;
      python3\ *) [[ -f $source/$argument ]] || fail "no such script" ;;
      cmake\ * | ctest\ * | build/bench/* | *' NAME'*) presets_exist "$command" || fail "no such preset" ;;
      *) run ;;
    esac
  done < <(commands "$page")
  ((shown > 0)) || { echo "$page: no command in a \`\`\`sh block" >&2; exit 1; }
done

((ran > 0)) || { echo "docs_test: no command was run" >&2; exit 1; }
echo "docs_test: $ran commands of $# pages ran"
