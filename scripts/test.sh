#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every fast test.
# Usage: scripts/test.sh [ctest arguments], for example: scripts/test.sh -R attention
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh

echo "test: running the fast tests"
exec ctest --test-dir build/release --label-regex '^fast$' --no-tests=error --output-on-failure -j2 "$@" </dev/null
