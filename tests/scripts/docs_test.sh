#!/usr/bin/env bash
# Runs the commands that the documentation shows (its ```sh blocks): README.md, the pages of docs/README.md in their
# order, CONTRIBUTING.md. All run in one folder that resembles the source tree, is emptied at the start and keeps its
# runs, so two pages cannot train different models into one run. A ```text block that follows holds lines that they print;
# "..." stands for what is left out, times may differ, and blocks of other things have no language. Commands that install,
# build or test are not run, since other checks do; the script or preset that they name must exist. Of mpirun only its
# command is run. A command with the placeholder NAME is not run either.
# Every page must be in the index, and every link between pages must lead to a file and to a heading.
# Usage: docs_test.sh THIMBLE_BINARY SOURCE_DIR FOLDER
set -euo pipefail
binary=$(realpath "$1")
source=$(realpath "$2")
folder=$(realpath -m "$3")

cd "$source"
mapfile -t index < <(sed -nE 's/^\| \[[^]]*\]\(([^)]*)\).*/docs\/\1/p' docs/README.md)
pages=(README.md "${index[@]}" CONTRIBUTING.md)
for page in docs/*.md; do
  [[ " docs/README.md ${pages[*]} " == *" $page "* ]] || { echo "$page: not in docs/README.md" >&2; exit 1; }
done

# The anchors of a page's headings, as GitHub makes them.
anchors() { sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'; }

for page in docs/README.md "${pages[@]}"; do
  (($(grep -c '^ *```' "$page") % 2 == 0)) || { echo "$page: a block is not closed" >&2; exit 1; }
  for link in $(sed '/^```/,/^```/d' "$page" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//'); do
    [[ $link != http* ]] || continue
    target=${link%%#*}
    target=${target:+$(dirname "$page")/$target}
    target=${target:-$page}
    [[ -e $target ]] || { echo "$page: $link: no such file" >&2; exit 1; }
    [[ $link != *#* ]] || grep -qxF -- "${link#*#}" <(anchors "$target") ||
      { echo "$page: $link: no such heading" >&2; exit 1; }
  done
done

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

# KIND<tab>LINE<tab>TEXT of a page: a command (continuation lines joined, comments left out), the start of a block, or a
# line of a ```text block.
parts() {
  awk '
    /^[ ]*```/ { kind = kind == "" ? substr($1, 4) " " : ""; if (kind != "") print "start\t" NR "\t" kind; next }
    kind == "text " { print "text\t" NR "\t" $0 }
    kind != "sh " { next }
    { if (command == "") line = NR; command = command $0 }
    sub(/\\$/, "", command) { next }
    command !~ /^[ ]*(#|$)/ { printf "command\t%d\t%s\n", line, command }
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
  printf '%s\n' "$output" >>"$printed"
  ran=$((ran + 1))
}

# compare LINE TEXT: whether the commands before have printed this line. Times are what follows "in" or stands in a table's
# last column, s.
compare() {
  local pattern times=
  [[ ! $2 =~ \ s$ || $2 =~ [0-9]\ s$ ]] || seconds=1
  ((seconds == 0)) || times='s/ +[0-9.\\]+$/ +[0-9.]+/'
  pattern=$(sed -E 's/[][\.*^$+?(){}|]/\\&/g; s/\\\.\\\.\\\./.*/; s/ in [0-9.\\]+ s$/ in [0-9.]+ s/; '"$times" <<<"$2")
  compared=$((compared + 1))
  grep -qxE -- "$pattern" "$printed" && return
  echo "$page:$1: is not printed: $2" >&2
  ((compares == 2)) || sed 's/^/  printed: /' "$printed" >&2
  wrong=$((wrong + 1)) compares=2  # what is printed is shown once a block
}

ran=0 compared=0 wrong=0 seconds=0 printed=$folder/printed
fused=$(grep -cwE -m 1 'avx2|asimd' /proc/cpuinfo || true)  # others train other weights
for page in "${pages[@]}"; do
  shown=0
  SECONDS=0
  while IFS=$'\t' read -r kind line command; do
    case $kind in
      start)
        seconds=0
        if [[ $command == 'sh ' ]]; then : >"$printed"; compares=1; elif [[ $command != 'text ' ]]; then compares=0; fi
        continue
        ;;
      text)
        ((compares == 0 || !fused)) || compare "$line" "$command"
        continue
        ;;
    esac
    shown=$((shown + 1))
    read -r program argument _ <<<"$command"
    case $command in
      'docker '*) [[ -f $source/Dockerfile ]] || fail "no Dockerfile" ;;
      'git '* | 'cd '* | 'sudo '* | 'apt '* | 'apt-get '*) ;;
      scripts/* | tests/* | .ci/*) [[ -x $source/$program ]] || fail "no such script" ;;
      mpirun\ *' build/'*) presets_exist "${command#mpirun -n [0-9] }" || fail "no such preset" ;;  # run by mpi_test.sh
      python3\ -m\ thimble.*) [[ -f $source/python/$(cut -d ' ' -f 3 <<<"$command" | tr . /).py ]] || fail "no such module" ;;
      python3\ examples/*) run ;;
      python3\ *) [[ -f $source/$argument ]] || fail "no such script" ;;
      cmake\ * | ctest\ * | build/bench/* | *' NAME'*) presets_exist "$command" || fail "no such preset" ;;
      mpirun\ *) command=${command#mpirun -n 16 } && run ;;
      build/cluster/*) presets_exist "$command" || fail "no such preset" ;;  # run by sweep_cluster_test.sh
      build/release/tests/*) presets_exist "$command" || fail "no such preset" ;;  # run by a test of that name
      *) run ;;
    esac
  done < <(parts "$page")
  ! grep -nE '^ *```(bash|shell|console)' "$page" >&2 || { echo "$page: commands belong in a \`\`\`sh block" >&2; exit 1; }
  echo "docs_test: $page: $shown commands, $SECONDS s"
done

# The tests that docs/testing.md names for the promises of a run exist.
while read -r name; do
  [[ -e $source/$name ]] || grep -qrF "TEST_CASE(\"$name\"" "$source/tests" || grep -qF "# $name" "$source"/tests/cases/*.txt ||
    { echo "docs_test: docs/testing.md: no such test: $name" >&2; exit 1; }
done < <(sed -n '/^## What holds the promises/,/^## What is not/p' "$source/docs/testing.md" | grep -oE '`[^`]+`' | tr -d '`')

((ran > 0)) || { echo "docs_test: no command was run" >&2; exit 1; }
((wrong == 0)) || { echo "docs_test: $wrong of $compared lines of \`\`\`text are not printed by the commands above them" >&2; exit 1; }
echo "docs_test: $ran commands of ${#pages[@]} pages ran, $compared lines are what they print"
