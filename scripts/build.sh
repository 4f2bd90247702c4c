#!/usr/bin/env bash
# Installs what is missing, then configures and builds the release preset, printing one line a step.
# Usage: scripts/build.sh [target...]   (default: everything)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/setup.sh

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {  # STEP COMMAND...: the command's output is shown only when it fails
  echo "build: $1"
  if ! "${@:2}" </dev/null >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    echo "build: failed: $1 (output above)" >&2
    exit 1
  fi
}

[[ -f build/release/build.ninja ]] || run "configuring build/release" cmake --preset release
run "compiling ${*:-everything} in build/release (a minute or two the first time)" \
  cmake --build build/release ${1:+--target "$@"}
