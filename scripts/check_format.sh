#!/usr/bin/env bash
# Checks that the C++ sources are as clang-format 14 (Debian 12's) lays them out, and scripts of the HTML report and its
# test as prettier does, which that test installs. Without the tool the check is skipped, unless CI is set.
# To format: clang-format-14 -i FILE; build/release/page/node_modules/.bin/prettier --write FILE.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

skip() {  # WHAT: is needed
  echo "format: $1" >&2
  [[ -z ${CI:-} ]] || exit 1
}

expected=14
tool=$(command -v "clang-format-$expected" || command -v clang-format || true)
version=none
[[ -z $tool ]] || version=$("$tool" --version | sed -E 's/.*version ([0-9]+).*/\1/')
mapfile -d '' files < <(find src include tests examples \( -name '*.h' -o -name '*.cpp' \) -print0 | sort -z)
((${#files[@]} > 0)) || { echo "format: no sources found" >&2; exit 1; }
if [[ $version != "$expected" ]]; then
  skip "clang-format $expected is needed for C++, found: $version"
elif ! "$tool" --dry-run --Werror "${files[@]}"; then
  echo "format: run $(basename "$tool") -i on the files above" >&2
  exit 1
fi

prettier=build/release/page/node_modules/.bin/prettier
mapfile -d '' scripts < <(find src tests \( -name '*.js' -o -name '*.mjs' \) -print0 | sort -z)
if [[ ! -x $prettier ]]; then
  skip "prettier is needed for JavaScript: run ctest --test-dir build/release -R '^page$' first"
  scripts=()
elif ! "$prettier" --log-level warn --check "${scripts[@]}"; then
  echo "format: run $prettier --write on the files above" >&2
  exit 1
fi
echo "format: ok ($((${#files[@]} + ${#scripts[@]})) files)"
