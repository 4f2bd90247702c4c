#!/usr/bin/env bash
# Runs the commands that a page shows (its ```sh blocks), in a folder of their own that looks like the source tree,
# so that what people are told to type works. Of commands that install, build or test, which other checks run for real,
# only the script or preset they name must exist.
# Usage: readme_test.sh THIMBLE_BINARY SOURCE_DIR PAGE
set -euo pipefail
binary=$(realpath "$1")
source=$(realpath "$2")
page=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for entry in "$source"/*; do
  case ${entry##*/} in
    build | runs) ;;
    *) ln -s "$entry" "$work/" ;;
  esac
done
mkdir -p "$work/build/release"
ln -s "$binary" "$work/build/release/thimble"
export PATH="$work/build/release:$PATH"
cd "$work"

# LINE<tab>COMMAND, continuation lines joined, comments left out.
commands() {
  awk '
    /^[ ]*```/ { inside = !inside && /^[ ]*```sh[ ]*$/; next }
    !inside { next }
    { if (command == "") line = NR; command = command $0 }
    sub(/\\$/, "", command) { next }
    command !~ /^[ ]*(#|$)/ { printf "%d\t%s\n", line, command }
    { command = "" }' "$page"
}

fail() {
  echo "$page:$line: $1: $command" >&2
  exit 1
}

presets_exist() {
  local name
  for name in $(grep -oE -- '--preset[ =][a-z]+' <<<"$1" | sed 's/.*[ =]//'); do
    grep -qE "\"name\": *\"$name\"" CMakePresets.json || return 1
  done
}

ran=0
while IFS=$'\t' read -r line command; do
  read -r program argument _ <<<"$command"
  case $program in
    git | cd | sudo | apt | apt-get) ;;
    scripts/* | .ci/*) [[ -x $source/$program ]] || fail "no such script" ;;
    python3) [[ -f $source/$argument ]] || fail "no such script" ;;
    cmake | ctest) presets_exist "$command" || fail "no such preset" ;;
    *)
      status=0
      output=$(bash -euo pipefail -c "$command" </dev/null 2>&1) || status=$?
      ((status == 0)) || { tail -n 30 <<<"$output" >&2; fail "exit status $status"; }
      ran=$((ran + 1))
      ;;
  esac
done < <(commands)

((ran > 0)) || { echo "$page: no command in a \`\`\`sh block was run" >&2; exit 1; }
echo "readme_test: $ran commands ran"
