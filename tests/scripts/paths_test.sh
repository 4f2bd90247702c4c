#!/usr/bin/env bash
# Paths that are not UTF-8, which JSON cannot hold: every command refuses them before it works or writes anything.
# Usage: paths_test.sh THIMBLE_BINARY SOURCE_DIR
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

wrong=$'u\xff'
cat >tiny.yaml <<'YAML'
task: {name: reverse, symbols: 4, length: 3}
data: {train: 20, validation: 4, test: 4}
model: {d_model: 4, heads: 1, layers: 1, d_ff: 4, output: {per: position}}
train: {steps: 2, batch: 4}
YAML
printf 'config: tiny.yaml\nseeds: [1]\n' >sweep.yaml
printf '%s\n' '{"input": "a b", "target": "b a"}' '{"input": "b a", "target": "a b"}' >data.jsonl
mkdir "$wrong"
cp tiny.yaml sweep.yaml data.jsonl "$wrong"
if ! cp tiny.yaml "$wrong/$wrong.yaml" 2>/dev/null; then
  echo "paths_test: this file system has only UTF-8 names, so nothing was tested"
  exit 0
fi
expect 0 'weights' train tiny.yaml --out run
cp -r run "$wrong/run"
weights=run/checkpoints/final.safetensors

utf8='not UTF-8'
refuse "$utf8" train tiny.yaml --out "$wrong/new"
refuse "$utf8" train tiny.yaml --out new --json "$wrong/json"
refuse "$utf8" train "$wrong/tiny.yaml" --out new
refuse "$utf8" train "$wrong/run" --resume
refuse "$utf8" train tiny.yaml task.name=file "task.file=$wrong/data.jsonl" --out new
refuse "$utf8" sweep sweep.yaml --out "$wrong/new"
refuse "$utf8" sweep "$wrong/sweep.yaml" --out new
refuse "$utf8" reproduce shift --experiments "$configs/reproduce" --out "$wrong/new"
refuse "$utf8" reproduce --list --experiments "$wrong"
refuse "$utf8" eval "$wrong/run"
refuse "$utf8" eval --config tiny.yaml --weights "$wrong/$weights"
refuse "$utf8" eval --config "$wrong/tiny.yaml" --weights "$weights"
refuse "$utf8" inspect "$wrong/run"
for option in --html --json; do refuse "$utf8" inspect run $option "$wrong/new"; done
refuse "$utf8" config "$wrong/tiny.yaml"
refuse "$utf8" gradcheck "$wrong/tiny.yaml"
refuse "$utf8" bench "$wrong/tiny.yaml"

# Names that no argument holds: a folder of experiments, and the current one, which completes the path of a data file.
mkdir experiments
cp tiny.yaml "experiments/$wrong.yaml"
refuse "$utf8" reproduce --list --experiments experiments
cd "$wrong"
printf 'task: {name: file, file: data.jsonl}\nmodel: {d_model: 4, heads: 1, layers: 1, d_ff: 4}\ntrain: {steps: 2, batch: 2}\n' >file.yaml
refuse 'UTF-8' train file.yaml --out new
expect 0 'weights' train tiny.yaml --out new --json json
expect 0 'loss' eval new
expect 0 '' inspect new --json json --quiet
echo "paths_test: ok"
