#!/usr/bin/env bash
# Proves that scripts/check_layout.sh accepts the tree and catches each kind of violation, planted alone in an empty tree.
# Usage: layout_test.sh SOURCE_DIR
set -euo pipefail
source=$(cd "$1" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree"/{include,src,tests,scripts}
touch "$tree/scripts/empty.sh"

failures=0
fail() {
  echo "FAILED: $1" >&2
  failures=$((failures + 1))
}
check() { "$source/scripts/check_layout.sh" "$1" 2>&1; }

plant() {  # FILE TEXT: a source of a room with its header
  mkdir -p "$tree/$(dirname "$1")"
  printf '%s\n' "$2" >"$tree/$1"
  [[ $1 != src/*/planted.cpp ]] || echo '#pragma once' >"$tree/${1%.cpp}.h"
}

rejects() {  # FILE TEXT LINE RULE: the check fails and says FILE:LINE: ...RULE
  plant "$1" "$2"
  local output status=0
  output=$(check "$tree") || status=$?
  rm -f "$tree/$1" "$tree/${1%.cpp}.h"
  [[ $status == 1 ]] || fail "accepted (status $status) in $1: ${2:0:200}"
  grep -F "$1:$3: " <<<"$output" | grep -qF -- "$4" || fail "expected $1:$3: ... $4, got: $output"
  plants=$((plants + 1))
}

accepts() {  # FILE TEXT
  plant "$1" "$2"
  local output
  output=$(check "$tree") || fail "rejected $1: ${2:0:200}: $output"
  rm -f "$tree/$1" "$tree/${1%.cpp}.h"
  plants=$((plants + 1))
}

plants=0
output=$(check "$source") || { echo "$output" >&2; echo "FAILED: the tree itself breaks the rules" >&2; exit 1; }
grep -qE '^layout: ok \([0-9]+ files\)$' <<<"$output" || fail "no summary in: $output"

# Which room includes which.
rejects src/engine/kernels/planted.cpp '#include "thimble/engine/tape.h"' 1 "folder engine/kernels may not include folder engine/autograd"
rejects src/engine/core/planted.cpp $'\n#include <thimble/engine/tensor.h>' 2 "engine/core may not include folder engine/tensor"
rejects include/thimble/engine/modules.h $'#pragma once\n#include "thimble/engine/model.h"' 2 "engine/nn may not include folder engine/model"
rejects src/engine/model/planted.cpp '#include "thimble/engine/optimizer.h"' 1 "engine/model may not include folder engine/optim"
rejects src/engine/autograd/planted.cpp '#include "engine/ops/check_lengths.h"' 1 "engine/autograd may not include folder engine/ops"
rejects src/engine/core/planted.cpp '#include "thimble/files/file.h"' 1 "room engine may not include room files"
rejects src/engine/planted/planted.cpp 'int x;' 1 "in no room of the engine"
rejects include/thimble/engine/planted.h '#pragma once' 1 "in no room of the engine"
accepts include/thimble/engine.h $'#pragma once\n#include "thimble/engine/ops.h"\n#include "thimble/engine/tensor.h"'
accepts src/train/planted.cpp '#include "engine/kernels/softmax.h"'
rejects include/thimble/train/planted.h $'#pragma once\n#include "engine/kernels/softmax.h"' 2 "a public header includes public ones"
rejects include/thimble/engine/tape.h $'#pragma once\n#include "engine/autograd/comparison.h"' 2 "a public header includes public ones"
rejects src/data/planted.cpp '#include "thimble/config/config.h"' 1 "room data may not include room config"
rejects src/config/planted.cpp '#include "thimble/train/train.h"' 1 "room config may not include room train"
rejects src/train/planted.cpp '#include "inspect/scores.h"' 1 "room train may not include room inspect"
rejects src/train/planted.cpp '#include "thimble/sweep/sweep.h"' 1 "room train may not include room sweep"
rejects src/config/planted.cpp '#include "thimble/sweep/sweep.h"' 1 "room config may not include room sweep"
rejects src/sweep/planted.cpp '#include "thimble/reproduce/reproduce.h"' 1 "room sweep may not include room reproduce"
rejects src/sweep/planted.cpp '#include "config/fields.h"' 1 "a private header of room config"
rejects src/inspect/planted.cpp '#include "thimble/reproduce/measure.h"' 1 "room inspect may not include room reproduce"
accepts src/reproduce/planted.cpp $'#include "thimble/inspect/report/inspect.h"\n#include "thimble/sweep/run_sweep.h"'
rejects src/reproduce/planted.cpp '#include "inspect/page.h"' 1 "a private header of room inspect"
accepts src/inspect/planted.cpp '#include "inspect/page.h"'
rejects src/inspect/planted.cpp '#include "thimble/inspect/scores/scores.h"' 1 "may not include folder inspect/scores"
rejects src/inspect/scores/planted.cpp '#include "inspect/report/page.h"' 1 "folder inspect/scores may not include folder inspect/report"
rejects src/inspect/effects/planted.cpp '#include "thimble/inspect/circuits/circuits.h"' 1 "may not include folder inspect/circuits"
accepts src/inspect/report/planted.cpp $'#include "thimble/inspect/scores/scores.h"\n#include "inspect/trace/trace_observer.h"'
rejects src/inspect/planted.cpp '#include "cli/table.h"' 1 "only src/cli includes src/cli"
rejects tests/train/planted.cpp '#include "src/cli/table.h"' 1 "only src/cli includes src/cli"
accepts tests/cli/planted.cpp '#include "cli/table.h"'
rejects src/train/planted.cpp '#include "thimble/thimble.h"' 1 "not in a room"
rejects src/extra/planted.cpp 'int x;' 1 "not in a room"
rejects tests/planted.cpp '#include "../catch.h"' 1 "no .. in include paths"
accepts src/config/planted.cpp $'#include "thimble/engine/model_config.h"\n#include "thimble/engine/optim_config.h"\n#include "fields.h"'
accepts src/inspect/planted.cpp $'#include "thimble/train/train.h"\n#include "thimble/engine/error.h"\n#include "inspect/x.h"'
rejects README.md 'Small: 23,000 lines of C++.' 1 "23000 lines of C++: there are "
accepts README.md 'Small: 1,000 lines of C++.'
accepts src/cli/planted.cpp $'#include "cli/table.h"\n#include "thimble/inspect/report.h"'

# The picture of rooms.
picture() { rejects docs/design.md $'# Design\n```mermaid\n'"$1"$'\n```' "$2" "$3"; }
picture 'engine --> files' 3 "an arrow must point to a room above it"
picture $'files --> engine\nfiles --> files' 4 "an arrow must point to a room above it"
picture $'files --> engine\ndata --> files\nfiles --> data' 5 "an arrow must point to a room above it"
picture 'files --> engine' 3 "files --> engine: nothing includes it"
rejects docs/design.md '# Design' 1 "no picture of rooms"
mkdir -p "$tree/include/thimble/files"
printf '#pragma once\n#include "thimble/engine/real.h"\n' >"$tree/include/thimble/files/file.h"
accepts docs/design.md $'```mermaid\nfiles --> engine\n```'
rm "$tree/include/thimble/files/file.h"

# The lines of floors.
mkdir -p "$tree/src/engine/core"
for rest in {1..3}; do echo 'int x;' >"$tree/src/engine/core/random_$rest.cpp"; done
echo '#pragma once' >"$tree/src/engine/core/random.h"
accepts scripts/floors.txt $'floor engine 4\ncore'
rejects scripts/floors.txt $'# rooms\nfloor engine 3\ncore' 2 "floor engine has 4 lines, at most 3"
accepts src/engine/README.md '# The engine: 54 lines'
rejects src/engine/README.md $'\n55 lines' 2 "55 lines: there are 4"
rm -r "$tree/src/engine"

# Names of sources, and how many of them.
rejects src/engine/core/unnamed.cpp 'int x;' 1 "no header of its room has its name"
rejects src/engine/core/planted_part/x.cpp 'int x;' 1 "no header of its room has its name"
mkdir -p "$tree/src/engine/core" && echo '#pragma once' >"$tree/src/engine/core/real.h"
accepts src/engine/core/real_part.cpp 'int x;'
accepts src/engine/core/folder/real.cpp 'int x;'
for i in {1..15}; do echo 'int x;' >"$tree/src/engine/core/real_$i.cpp"; done
accepts src/engine/tensor/planted.cpp 'int x;'
rejects src/engine/core/real_too_many.cpp 'int x;' 1 "src/engine/core has more than 15 sources"
rm -r "$tree/src/engine/core"

# Where libraries may be used.
rejects src/engine/kernels/planted.cpp '#include <cblas.h>' 1 "allowed only in src/engine/kernels/products/backend.cpp"
rejects src/engine/kernels/planted.cpp 'void f() { openblas_set_num_threads(1); }' 1 "BLAS is called only"
rejects src/engine/ops/planted.cpp 'void f() { cblas_sscal(1, 2.f, x, 1); }' 1 "BLAS is called only"
rejects src/engine/kernels/planted.cpp '#include <lapacke.h>' 1 "allowed only in src/inspect/circuits/spectral.cpp"
rejects src/engine/kernels/planted.cpp 'void dgeev_(const char*);' 1 "LAPACK is called only"
rejects src/inspect/planted.cpp 'int f() { return LAPACKE_dgesvd(1); }' 1 "LAPACK is called only"
rejects tests/kernels/planted.cpp 'void f() { dsyev_("N", "U"); }' 1 "LAPACK is called only"
rejects src/config/planted.cpp '#include <yaml-cpp/yaml.h>' 1 "allowed only in src/config/yaml_parser.cpp"
rejects src/train/planted.cpp '#include <yaml-cpp/yaml.h>' 1 "allowed only in src/config/yaml_parser.cpp"
rejects tests/config/planted.cpp 'auto n = YAML::Load("a: 1");' 1 "yaml-cpp is used only"
rejects src/engine/optim/planted.cpp '#include <hwy/highway.h>' 1 "allowed only in (src/engine|tests)/kernels/"
rejects src/cli/planted.cpp '#include <CLI/CLI.hpp>' 1 "allowed only in src/cli/command_line.cpp"
rejects src/data/planted.cpp '#include <Random123/philox.h>' 1 "allowed only in src/engine/core/random.cpp"
rejects src/engine/autograd/planted.cpp '#include <catch2/catch.hpp>' 1 "allowed only in tests/"
accepts src/engine/kernels/planted.cpp '#include "hwy/highway.h"'
accepts src/train/planted.cpp 'X::X() : sorted_(1), steps_(2), degrees_(3), store_(4), states_(5) {} // dgeev_(x)'
plant include/thimble/config/yaml.h '#pragma once'
accepts src/config/yaml_parser.cpp $'#include <yaml-cpp/yaml.h>\nYAML::Node n;'
accepts tests/planted.cpp '#include <catch2/catch_test_macros.hpp>'

# The terminal.
rejects src/train/planted.cpp '#include <iostream>' 1 "src/cli/print.h writes to the terminal"
rejects src/train/planted.cpp $'// why\nvoid f() { fmt::print("x"); }' 2 "only src/cli/print.cpp writes to the terminal"
rejects src/train/planted.cpp 'void f() { fmt::print(stderr, "x"); }' 1 "only src/cli/print.cpp writes to the terminal"
rejects src/engine/core/planted.cpp 'void f() { std::printf("x"); }' 1 "only src/cli/print.cpp writes to the terminal"
rejects src/data/planted.cpp 'void f() { std::cout << 1; }' 1 "only src/cli/print.cpp writes to the terminal"
rejects include/thimble/files/planted.h $'#pragma once\ninline void f() { std::cerr << 1; }' 2 "only src/cli/print.cpp writes"
rejects src/engine/core/planted.cpp $'/* cout\n */ const char* s = "//"; void f() { puts(s); }' 2 "only src/cli/print.cpp writes"
rejects src/cli/planted.cpp $'\nvoid f() { fmt::print(stderr, "x"); }' 2 "only src/cli/print.cpp writes to the terminal"
rejects src/cli/planted.cpp '#include <iostream>' 1 "src/cli/print.h writes to the terminal"
accepts src/cli/planted.cpp $'#include "cli/print.h"\nvoid f() { print_err("x {}", 1); write_out("x"); }'
accepts src/train/planted.cpp $'// not printf(...)\n/* std::cout\n << 1 */ auto s = "puts(stdout)"; int n = snprintf(b, 9, "x");'
accepts src/inspect/planted.cpp $'auto html = R"html(<script>\nstd::cout puts(1)\n)html";'

# Ops, headers, sizes, leftovers.
cases='  return {{"planted_op", "", {normal("x", {1})}, f}};'
op=$'#pragma once\n// An op.\nVar planted_op(Var x);'
rejects include/thimble/engine/ops.h "$op" 3 'op planted_op has no case "planted_op"'
rejects include/thimble/engine/ops.h $'#pragma once\nstd::pair<Var, Var> planted_op(const Tensor& x,' 2 "op planted_op has no case"
rejects src/engine/ops/planted.cpp $'void f() {\n  for (int i = 0; i < n; ++i) x[i] = 0;\n}' 2 "a loop in an op"
rejects src/engine/ops/planted.cpp 'void f() { while (true) g(); }' 1 "a loop in an op"
rejects include/thimble/files/planted.h 'int f();' 1 "no #pragma once"
rejects src/engine/core/planted.cpp $'int f();\n// TO''DO: finish' 2 "finish it"
rejects tests/planted.sh $'#!/bin/sh\n# FIX''ME' 2 "finish it"
rejects src/engine/core/planted.cpp "$(yes '// a line' | head -n 401)" 401 "401 lines"
rejects tests/planted.cpp "$(yes '// a line' | head -n 401)" 401 "401 lines"
accepts src/engine/core/planted.cpp "$(yes '// a line' | head -n 400)"
accepts src/engine/kernels/planted.cpp 'void f() { for (;;) g(); }'
accepts src/engine/ops/gradcheck_inputs.h $'#pragma once\nvoid f() { for (;;) g(); }'
accepts src/engine/ops/planted.cpp $'// for (each) row\nconst char* s = "for (x)"; int before(int);'
plant src/engine/ops/planted.cpp 'Var planted_op(Var x) { return record("planted_op", x.shape(), f); }'
rejects include/thimble/engine/ops.h "$op" 3 'op planted_op has no case "planted_op"'
plant include/thimble/engine/ops.h "$op"
accepts src/engine/ops/planted.cpp "$cases"
rm "$tree/include/thimble/engine/ops.h"

rejects tests/package-lock.json $'{\n"resolved": "https://registry.example/x.tgz"}' 2 "a lock file names a registry"
accepts tests/package-lock.json '{"integrity": "sha512-x", "funding": {"url": "https://example.org"}}'

# Retired words, and terms that a page must say.
rejects src/engine/core/planted.cpp $'int f();\nstruct Culprit {};' 2 "Culprit: a retired name; use NonFinite"
rejects src/engine/core/planted.cpp 'constexpr int kLongestName = 8;' 1 "kLongestName: a retired name"
rejects tests/planted.cpp 'auto all = data.links(example);' 1 "links: a retired name"
rejects docs/planted.md $'# A page\n\nWith `thimble write` it answers.' 3 "retired words; use thimble generate"
rejects configs/planted.yaml 'train: {watch_heads: true}' 1 "use log_heads"
rejects src/engine/core/planted.cpp 'auto text = "key x stands twice";' 1 "use duplicate"
accepts src/engine/core/planted.cpp $'// Draws a number.\nauto s = "Link"; struct Passages {}; int pass;'
cp -r "$source/docs" "$source/README.md" "$tree"
output=$(check "$tree" || true)
[[ $output != *"which people search for"* ]] || fail "a term is missing: $output"
sed -i 's/beam search/beams/gi' "$tree/docs/models.md"
output=$(check "$tree" || true)
[[ $output == *'docs/models.md:1: does not say "beam search"'* ]] || fail "a term that is missing is not found: $output"

((failures == 0)) || { echo "layout_test: $failures failures" >&2; exit 1; }
echo "layout_test: ok ($plants planted files)"
