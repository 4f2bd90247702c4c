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
rejects src/engine/kernels/planted.cpp '#include "thimble/engine/tape.h"' 1 "engine/kernels may not include engine/autograd"
rejects src/engine/core/planted.cpp $'\n#include <thimble/engine/tensor.h>' 2 "engine/core may not include engine/tensor"
rejects include/thimble/engine/modules.h $'#pragma once\n#include "thimble/engine/model.h"' 2 "engine/nn may not include engine/model"
rejects src/engine/model/planted.cpp '#include "thimble/engine/optimizer.h"' 1 "engine/model may not include engine/optim"
rejects src/engine/autograd/planted.cpp '#include "engine/ops/check_lengths.h"' 1 "engine/autograd may not include engine/ops"
rejects src/engine/core/planted.cpp '#include "thimble/train/file.h"' 1 "engine/core may not include train/files"
rejects src/engine/ops/planted.cpp '#include "thimble/engine.h"' 1 "engine/ops may not include engine"
accepts include/thimble/engine.h $'#pragma once\n#include "thimble/engine/ops.h"\n#include "thimble/engine/tensor.h"'
rejects include/thimble/engine.h $'#pragma once\n#include "thimble/train/file.h"' 2 "engine may not include train/files"
accepts src/train/data/planted.cpp $'#include "thimble/engine.h"\n#include "engine/kernels/softmax.h"'
rejects include/thimble/train/batch.h $'#pragma once\n#include "engine/kernels/softmax.h"' 2 "a public header includes public ones"
rejects include/thimble/engine/tape.h $'#pragma once\n#include "engine/autograd/comparison.h"' 2 "a public header includes public ones"
rejects src/train/data/planted.cpp '#include "thimble/train/config.h"' 1 "train/data may not include train/config"
rejects src/train/config/planted.cpp '#include "thimble/train/train.h"' 1 "train/config may not include train/runs"
rejects src/train/step/planted.cpp '#include "thimble/train/run.h"' 1 "train/step may not include train/runs"
rejects src/train/runs/planted.cpp '#include "inspect/scores/scores.h"' 1 "train/runs may not include inspect/scores"
rejects src/train/config/planted.cpp '#include "program/sweep/sweep.h"' 1 "train/config may not include program/sweep"
rejects src/program/sweep/planted.cpp '#include "program/reproduce/reproduce.h"' 1 "program/sweep may not include program/reproduce"
rejects src/inspect/report/planted.cpp '#include "program/reproduce/measure.h"' 1 "inspect/report may not include program/reproduce"
accepts src/program/reproduce/planted.cpp $'#include "thimble/inspect/inspect.h"\n#include "program/sweep/run_sweep.h"'
rejects src/inspect/scores/planted.cpp '#include "inspect/report/page.h"' 1 "inspect/scores may not include inspect/report"
rejects src/inspect/effects/planted.cpp '#include "thimble/inspect/circuits.h"' 1 "inspect/effects may not include inspect/circuits"
accepts src/inspect/report/planted.cpp $'#include "thimble/inspect/scores.h"\n#include "inspect/trace/trace_observer.h"'
rejects src/program/sweep/planted.cpp '#include "program/cli/table.h"' 1 "program/sweep may not include program/cli"
rejects src/program/cli/planted.cpp '#include "addons/lab/session.h"' 1 "program/cli may not include addons/lab"
accepts tests/program/cli/planted.cpp '#include "program/cli/table.h"'
rejects src/train/step/planted.cpp '#include "thimble/thimble.h"' 1 "in no floor"
rejects src/train/step/planted.cpp '#include "train/none/x.h"' 1 "in no room"
rejects src/train/step/planted.cpp '#include "thimble/train/none.h"' 1 "in no room"
for file in src/extra/planted.cpp src/engine/planted.cpp src/engine/planted/planted.cpp; do
  rejects $file 'int x;' 1 "in no room; name it in scripts/floors.txt"
done
rejects include/thimble/engine/planted.h '#pragma once' 1 "in no room; name it in scripts/floors.txt"
rejects tests/planted.cpp '#include "../catch.h"' 1 "no .. in include paths"

# The lines of floors.
mkdir -p "$tree/src/engine/core"
for rest in {1..3}; do echo 'int x;' >"$tree/src/engine/core/random_$rest.cpp"; done
echo '#pragma once' >"$tree/src/engine/core/random.h"
accepts scripts/floors.txt $'floor engine 4\ncore\nwhole 4'
echo $'// A comment costs nothing.\n\n  // nor does a blank line' >"$tree/src/engine/core/random_4.cpp"
accepts scripts/floors.txt $'floor engine 4\ncore'
rejects scripts/floors.txt $'whole 3\nfloor engine 4\ncore' 1 "all floors have 4 lines, at most 3"
rejects scripts/floors.txt $'# rooms\nfloor engine 3\ncore' 2 "floor engine has 4 lines, at most 3"
accepts src/engine/README.md '# The engine: 54 lines'
rejects src/engine/README.md $'\n55 lines' 2 "floor engine: 55 lines, there are 4"
rejects src/addons/README.md '51 lines' 1 "floor addons: 51 lines, there are 0"
rejects README.md $'[engine](src/engine/README.md) 54, [training](src/train/README.md)\n[x](src/train/README.md) 1,051' 2 "floor train: 1051 lines, there are 0"
accepts README.md '[engine](src/engine/README.md) 54, [training](src/train/README.md)'
rm -r "$tree/src/engine"

# The rules of commits, in a history of its own.
history=$(mktemp -d)
trap 'rm -rf "$tree" "$history"' EXIT
git -C "$history" init -q
mkdir "$history/scripts"
cp "$source/scripts/check_commits.sh" "$history/scripts"
commit() {  # LIMIT MESSAGE: a commit in which the engine may have that many lines
  printf 'whole 90\nfloor engine %s\n' "$1" >"$history/scripts/floors.txt"
  git -C "$history" add . && git -C "$history" -c user.name=t -c user.email=t@t commit -qm "$2" --allow-empty
}
commits() {  # STATUS PATTERN: what the check says of the last commit
  local output status=0
  output=$("$history/scripts/check_commits.sh" HEAD~ 2>&1) || status=$?
  [[ $status == "$1" ]] && grep -qE -- "$2" <<<"$output" || fail "commits: status $status, not $1, or no match for $2: $output"
  plants=$((plants + 1))
}
commit 40 'begin'
commit 40 "$(printf 'x%.0s' {1..72})" && commits 0 '^commits: ok \(1\)$'
commit 40 "$(printf 'x%.0s' {1..73})" && commits 1 ': the subject has 73 characters; at most 72$'
commit 45 'Raise' && commits 1 ': raises the limit of engine by 5; say in the body: floor engine \+5: FEATURE'
commit 50 $'Raise\n\nfloor engine +4: arrays, in place of --npy' && commits 1 'raises the limit of engine by 5'
commit 55 $'Raise\n\nfloor engine +5: arrays, in place of --npy' && commits 0 ok
commit 30 'Lower' && commits 0 ok

# Names of sources, and how many of them.
rejects src/engine/core/unnamed.cpp 'int x;' 1 "no header of its room has its name"
rejects src/engine/core/planted_part/x.cpp 'int x;' 1 "no header of its room has its name"
mkdir -p "$tree/src/engine/core" && echo '#pragma once' >"$tree/src/engine/core/real.h"
accepts src/engine/core/real_part.cpp 'int x;'
plant src/engine/core/folder/real.cpp 'int x;'
rejects src/engine/core/real.h '#pragma once' 1 "lies beside its source, in src/engine/core/folder"
rm -r "$tree/src/engine/core/folder" && echo '#pragma once' >"$tree/src/engine/core/real.h"
for i in {1..15}; do echo 'int x;' >"$tree/src/engine/core/real_$i.cpp"; done
accepts src/engine/tensor/planted.cpp 'int x;'
rejects src/engine/core/real_too_many.cpp 'int x;' 1 "src/engine/core has more than 15 sources"
rm -r "$tree/src/engine/core"

# Where libraries may be used.
rejects src/engine/kernels/planted.cpp '#include <cblas.h>' 1 "allowed only in src/engine/kernels/products/backend.cpp"
rejects src/engine/kernels/planted.cpp 'void f() { openblas_set_num_threads(1); }' 1 "BLAS is called only"
rejects src/engine/ops/planted.cpp 'void f() { cblas_sscal(1, 2.f, x, 1); }' 1 "BLAS is called only"
rejects src/engine/kernels/planted.cpp '#include <Eigen/SVD>' 1 "allowed only in src/inspect/circuits/spectral.cpp"
rejects src/inspect/report/planted.cpp 'Eigen::MatrixXd m;' 1 "Eigen is used only"
rejects src/engine/kernels/planted.cpp '#include <lapacke.h>' 1 "LAPACK is not called"
rejects src/inspect/report/other.cpp 'void dgeev_(const char*);' 1 "LAPACK is not called"
rejects src/inspect/report/planted.cpp 'int f() { return LAPACKE_dgesvd(1); }' 1 "LAPACK is not called"
rejects tests/engine/kernels/planted.cpp 'void f() { dsyev_("N", "U"); }' 1 "LAPACK is not called"
rejects src/train/config/planted.cpp '#include <yaml-cpp/yaml.h>' 1 "allowed only in src/train/config/yaml_parser.cpp"
rejects src/train/step/planted.cpp '#include <yaml-cpp/yaml.h>' 1 "allowed only in src/train/config/yaml_parser.cpp"
rejects tests/train/config/planted.cpp 'auto n = YAML::Load("a: 1");' 1 "yaml-cpp is used only"
rejects tests/train/data/planted.cpp 'CHECK(x == Catch::Detail::Approx(1));' 1 "use those of tests/catch.h"
rejects src/engine/optim/planted.cpp '#include <hwy/highway.h>' 1 "allowed only in (src|tests)/engine/kernels/"
rejects src/program/cli/planted.cpp '#include <CLI/CLI.hpp>' 1 "allowed only in src/program/cli/(command_line|completion|help).cpp"
rejects src/train/data/planted.cpp '#include <Random123/philox.h>' 1 "allowed only in src/engine/core/random.cpp"
rejects src/engine/autograd/planted.cpp '#include <catch2/catch.hpp>' 1 "allowed only in tests/"
accepts src/engine/kernels/planted.cpp '#include "hwy/highway.h"'
accepts src/train/step/planted.cpp 'X::X() : sorted_(1), steps_(2), degrees_(3), store_(4), states_(5) {} // dgeev_(x)'
plant src/train/config/yaml.h '#pragma once'
accepts src/train/config/yaml_parser.cpp $'#include <yaml-cpp/yaml.h>\nYAML::Node n;'
accepts tests/planted.cpp '#include <catch2/catch_test_macros.hpp>'

# The terminal.
rejects src/train/step/planted.cpp '#include <iostream>' 1 "src/program/cli/print.h writes to the terminal"
rejects src/train/step/planted.cpp $'// why\nvoid f() { fmt::print("x"); }' 2 "only src/program/cli/print.cpp writes to the terminal"
rejects src/train/step/planted.cpp 'void f() { fmt::print(stderr, "x"); }' 1 "only src/program/cli/print.cpp writes to the terminal"
rejects src/engine/core/planted.cpp 'void f() { std::printf("x"); }' 1 "only src/program/cli/print.cpp writes to the terminal"
rejects src/train/data/planted.cpp 'void f() { std::cout << 1; }' 1 "only src/program/cli/print.cpp writes to the terminal"
rejects include/thimble/train/file.h $'#pragma once\ninline void f() { std::cerr << 1; }' 2 "only src/program/cli/print.cpp writes"
rejects src/engine/core/planted.cpp $'/* cout\n */ const char* s = "//"; void f() { puts(s); }' 2 "only src/program/cli/print.cpp writes"
rejects src/program/cli/planted.cpp $'\nvoid f() { fmt::print(stderr, "x"); }' 2 "only src/program/cli/print.cpp writes to the terminal"
rejects src/program/cli/planted.cpp '#include <iostream>' 1 "src/program/cli/print.h writes to the terminal"
accepts src/program/cli/planted.cpp $'#include "program/cli/print.h"\nvoid f() { print_err("x {}", 1); write_out("x"); }'
accepts src/train/step/planted.cpp $'// not printf(...)\n/* std::cout\n << 1 */ auto s = "puts(stdout)"; int n = snprintf(b, 9, "x");'
accepts src/inspect/report/planted.cpp $'auto html = R"html(<script>\nstd::cout puts(1)\n)html";'

# Ops, headers, sizes, leftovers.
cases='  return {{"planted_op", "", {normal("x", {1})}, f}};'
op=$'#pragma once\n// An op.\nVar planted_op(Var x);'
rejects include/thimble/engine/ops.h "$op" 3 'op planted_op has no case "planted_op"'
rejects include/thimble/engine/ops.h $'#pragma once\nstd::pair<Var, Var> planted_op(const Tensor& x,' 2 "op planted_op has no case"
rejects src/engine/ops/planted.cpp $'void f() {\n  for (int i = 0; i < n; ++i) x[i] = 0;\n}' 2 "a loop in an op"
rejects src/engine/ops/planted.cpp 'void f() { while (true) g(); }' 1 "a loop in an op"
rejects include/thimble/train/file.h 'int f();' 1 "no #pragma once"
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

rejects docs/planted.md $'\nRun `scripts/none.sh` first.' 2 "scripts/none.sh: no such file"
rejects docs/planted.md 'A [test](../tests/ops/none_test.cpp) and `scripts/empty.sh`.' 1 "tests/ops/none_test.cpp: no such file"
accepts src/engine/core/planted.cpp '// scripts/empty.sh, build/tests/none.sh and `tests/reference*.h`'

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
