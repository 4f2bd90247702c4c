#!/usr/bin/env bash
# From a fresh clone to a trained transformer: installs what is missing, builds, trains configs/reverse.yaml
# and shows what the attention head learned. Usage: scripts/quickstart.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh thimble_program

step=""
trap 'echo "quickstart: failed: $step (exit status $?)" >&2' ERR
begin() {
  step=$1
  echo "quickstart: $1"
}

run=runs/quickstart
for ((i = 2; ; i++)); do
  [[ -e $run ]] || break
  run=runs/quickstart-$i
done

begin "training configs/reverse.yaml into $run"
build/release/thimble train configs/reverse.yaml --out "$run"

begin "what the attention head learned"
build/release/thimble inspect "$run"
