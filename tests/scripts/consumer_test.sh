#!/usr/bin/env bash
# Installs a build into a folder of its own, then builds the project that docs/library.md shows against it, programs in
# double precision and on the engine alone, one with an op of its own, and those of examples/, and runs all: the package is
# complete, nothing in it points back into the source or build tree, and the page is right, as is the version in the changelog.
# Usage: consumer_test.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
build=$(realpath "$1")
source=$(realpath "$2")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() {  # STEP COMMAND...: the command's output is shown only when it fails
  "${@:2}" >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "consumer_test: failed: $1" >&2; exit 1; }
}

run "install" cmake --install "$build" --prefix "$work/prefix"
if grep -rnF -e "$source" -e "$build" --include='*.cmake' --include='*.pc' "$work/prefix" >&2; then
  echo "consumer_test: the installed package names the source or build tree (above)" >&2
  exit 1
fi

# The page's first block of a language, or the one after a line with a text.
block() {
  awk -v open="^\`\`\`$1\$" -v after="${2:-}" 'index($0, after) { found = 1 }
    /^```/ && inside { exit } inside { print } found && $0 ~ open { inside = 1 }' "$source/docs/library.md"
}
mkdir "$work/consumer"
block cmake >"$work/consumer/CMakeLists.txt"
block cpp >"$work/consumer/main.cpp"
cat >>"$work/consumer/CMakeLists.txt" <<'EOF'
add_executable(in_double in_double.cpp)
target_link_libraries(in_double PRIVATE thimble::f64)
EOF
cat >"$work/consumer/in_double.cpp" <<'EOF'
#include <thimble/inspect.h>

int main() {
  thimble::Tape tape;
  return thimble::scale(tape.constant(thimble::Tensor({1}, {0.1})), 2).item() == 0.2 ? 0 : 1;
}
EOF
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
run "configure the consumer" cmake -S "$work/consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/prefix"
run "build the consumer" cmake --build "$work/build"
diff <("$work/build/example") <(block text) || { echo "consumer_test: failed: the page's program (above)" >&2; exit 1; }
run "configure the examples" cmake -S "$source/examples" -B "$work/examples" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_FLAGS=-Werror
run "build the examples" cmake --build "$work/examples"
for example in tiny loop; do
  diff <("$work/examples/$example") <(block text "examples/$example.cpp") ||
    { echo "consumer_test: failed: the output of examples/$example.cpp on the page (above)" >&2; exit 1; }
done
"$work/build/in_double" || { echo "consumer_test: failed: the program in double precision" >&2; exit 1; }

# The engine alone, where neither yaml-cpp nor JSON nor threads can be found.
mkdir "$work/engine"
cat >"$work/engine/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(engine_alone LANGUAGES CXX)
foreach(package yaml-cpp nlohmann_json Threads)
  set(CMAKE_DISABLE_FIND_PACKAGE_${package} ON)
endforeach()
EOF
block cmake "## The engine alone" >"$work/page.cmake"
sed -n '/^find_package/p' "$work/page.cmake" >>"$work/engine/CMakeLists.txt"
cat >>"$work/engine/CMakeLists.txt" <<'EOF'
foreach(precision engine engine_f64)
  add_executable(on_${precision} main.cpp)
  target_link_libraries(on_${precision} PRIVATE thimble::${precision})
endforeach()
foreach(op own_op wrong_op)
  add_executable(${op} ${op}.cpp)
  target_link_libraries(${op} PRIVATE thimble::engine_f64)
endforeach()
if(TARGET thimble::thimble)
  message(FATAL_ERROR "the engine alone brings the rest along")
endif()
EOF
cat >"$work/engine/main.cpp" <<'EOF'
#include <thimble/engine.h>

#include <cstdio>

int main() {
  const thimble::Random random(1, thimble::Stream::data);
  thimble::Tape tape;
  const thimble::Var y = thimble::softmax(tape.constant(thimble::Tensor({1, 2}, {0, 0})));
  std::printf("%d %g %d\n", static_cast<int>(sizeof(thimble::Real)), static_cast<double>(y.value().data[0]),
              static_cast<int>(random.below(1, 0, 0)));
}
EOF
block cpp "## An op of your own" >"$work/engine/own_op.cpp"
sed 's/= 2 \* /= /' "$work/engine/own_op.cpp" >"$work/engine/wrong_op.cpp"
run "configure the engine alone" cmake -S "$work/engine" -B "$work/engine/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/prefix"
run "build on the engine alone" cmake --build "$work/engine/build"
said=$("$work/engine/build/on_engine"; "$work/engine/build/on_engine_f64")
[[ $said == $'4 0.5 0\n8 0.5 0' ]] || { echo "consumer_test: failed: programs on the engine alone: $said" >&2; exit 1; }

diff <("$work/engine/build/own_op") <(block text "## An op of your own") ||
  { echo "consumer_test: failed: the page's op (above)" >&2; exit 1; }
if said=$("$work/engine/build/wrong_op") || [[ $said != 'gradient of x: the gradient is '*', numerically '* ]]; then
  echo "consumer_test: failed: the page's op with a wrong gradient says: $said" >&2
  exit 1
fi

sed 's/COMPONENTS engine/COMPONENTS motor/' "$work/engine/CMakeLists.txt" >"$work/consumer/CMakeLists.txt"
if cmake -S "$work/consumer" -B "$work/motor" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/log" 2>&1 ||
  ! grep -q 'thimble has no component motor: choose engine' "$work/log"; then
  echo "consumer_test: failed: a component that does not exist: $(cat "$work/log")" >&2
  exit 1
fi

version=$("$work/prefix/bin/thimble" --version)
version=${version#thimble }
grep -q "thimble_${version}_amd64" "$source/docs/library.md" && [[ $(grep -m1 '^## [0-9]' "$source/CHANGELOG.md") == "## $version"* ]] ||
  { echo "consumer_test: docs/library.md or CHANGELOG.md has another version than the program, $version" >&2; exit 1; }
