#!/usr/bin/env bash
# Counts what the unit tests and some tests of the program execute: regions, lines and branches of each room. Branches of
# tensor, autograd, ops, kernels, config, and of what train writes and reads, that no test takes must be named in
# tests/coverage/coverage.txt with the reason, else the status is 1. Kernels are compiled for this CPU alone.
# Usage: tests/coverage/coverage.sh [--json FILE | --list]   Needs clang-14, llvm-14 and libclang-rt-14-dev.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$PWD/build/coverage

cmake --preset coverage >/dev/null
cmake --build --preset coverage
rm -rf "$build/profiles"
export LLVM_PROFILE_FILE="$build/profiles/%4m.profraw"
# Threads that share one CPU lose no counts: each count is one instruction.
tests='unit_(common|f32|f64|cluster)(_slow)?|gradcheck|gradcheck_model|cli|cases|data|paths|own_files|runs|upgrade|text|predictions'
taskset --cpu-list 0 ctest --test-dir "$build" --output-on-failure -R "^($tests|sweep|compare|outputs|streams)\$"
# What the environment chooses once per process; tests of the label fast compare the results.
for target in avx2 sse4 baseline; do THIMBLE_TARGET=$target "$build/thimble" gradcheck >"$build/gradcheck.txt"; done
for wrong in THIMBLE_TARGET THIMBLE_GEMM; do
  status=0
  env $wrong=none "$build/thimble" gradcheck >"$build/gradcheck.txt" 2>&1 || status=$?
  ((status == 2)) || { echo "coverage: $wrong=none: exit status $status, not 2" >&2; exit 1; }
done
for precision in float32 float64; do
  THIMBLE_GEMM=openblas "$build/thimble" train configs/translation_recurrent.yaml train.steps=2 train.schedule.warmup=1 \
    train.precision=$precision --quiet >"$build/train.txt"
done
llvm-profdata-14 merge -sparse "$build"/profiles/*.profraw -o "$build/tests.profdata"
llvm-cov-14 export -skip-expansions -instr-profile "$build/tests.profdata" "$build/tests/unit_common" \
  -object "$build/tests/unit_f32" -object "$build/tests/unit_f64" -object "$build/thimble" >"$build/coverage.json"
python3 tests/coverage/coverage.py "$build/coverage.json" "$@"
