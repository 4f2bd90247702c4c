#!/usr/bin/env bash
# Tests reports in headless chromium, and leaves screenshots in the directory.
# Exits with 77 and a message where a tool is missing.
# Usage: page_test.sh PAGE_REPORT THIMBLE_BINARY DIRECTORY
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
report=$1 thimble=$2 directory=$3

skip() {
  echo "page: skipped: $1"
  exit 77
}

command -v node >/dev/null || skip "no node; on Debian: scripts/setup.sh nodejs npm"
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
"$report" "$directory"
node "$here/characters_test.mjs" "$directory"

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  skip "no chromium; on Debian: scripts/setup.sh chromium"

packages=("$here/package.json" "$here/package-lock.json")
if ! cat "${packages[@]}" | cmp -s - "$directory/installed"; then
  command -v npm >/dev/null || skip "no npm to install playwright-core with"
  cp "${packages[@]}" "$directory"
  npm ci --prefix "$directory" --ignore-scripts --no-audit --no-fund </dev/null >"$directory/npm.log" 2>&1 ||
    skip "npm could not install playwright-core, see $directory/npm.log"
  cat "${packages[@]}" >"$directory/installed"
fi

rm -rf "$directory/pair"
"$thimble" train "$here/pair.yaml" --out "$directory/pair" --quiet
"$thimble" inspect "$directory/pair" --sequences 200 --examples 4 --html "$directory/pair.html" --quiet
"$thimble" trace "$directory/pair" "5 1 0 3 3" --sequences 50 --examples 2 --html "$directory/own_pair.html" --quiet

rm -rf "$directory/runs"
"$thimble" train "$here/pair.yaml" train.checkpoint_series=true --out "$directory/runs/series" --quiet
"$thimble" inspect "$directory/runs/series" --sequences 50 --examples 2 --html "$directory/series.html" --quiet
short=("$here/../../../../configs/reverse.yaml" train.steps=60 train.batch=16 train.evaluate_every=20 train.schedule.warmup=2
  data.validation=50 data.test=50)
# Heads that have learned something, or none matches.
longer=("${short[0]}" train.steps=1000 train.evaluate_every=20 data.validation=50 data.test=50)
"$thimble" train "${longer[@]}" --out "$directory/runs/one" --quiet
"$thimble" train "${longer[@]}" model.heads=4 train.seed=7 --out "$directory/runs/four" --quiet
"$thimble" compare "$directory"/runs/{one,four} --html "$directory/compare.html" --quiet
printf 'config: %s\ngrid: {model.heads: [1, 2], train.optimizer.lr: [1e-3, 5e-3, 2e-2]}\nseeds: [7, 8]\n' "${short[0]}" \
  >"$directory/sweep.yaml"
"$thimble" sweep "$directory/sweep.yaml" "${short[@]:1}" --out "$directory/runs/sweep" --html "$directory/sweep.html" --quiet
for tests in answer page means values patching compare series; do node "$here/${tests}_test.mjs" "$directory" "$chromium"; done
