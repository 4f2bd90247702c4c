#!/usr/bin/env bash
# Checks that the C++ sources are as clang-format 14 (Debian 12's) lays them out; another major version formats
# differently, so there the check is skipped, unless CI is set. To format: clang-format-14 -i FILE.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

expected=14
tool=$(command -v "clang-format-$expected" || command -v clang-format || true)
version=none
[[ -z $tool ]] || version=$("$tool" --version | sed -E 's/.*version ([0-9]+).*/\1/')
if [[ $version != "$expected" ]]; then
  echo "format: clang-format $expected is needed, found: $version" >&2
  [[ -z ${CI:-} ]] || exit 1
  echo "format: skipped"
  exit 0
fi

mapfile -d '' files < <(find src include tests \( -name '*.h' -o -name '*.cpp' \) -print0 | sort -z)
((${#files[@]} > 0)) || { echo "format: no sources found" >&2; exit 1; }
if ! "$tool" --dry-run --Werror "${files[@]}"; then
  echo "format: run $(basename "$tool") -i on the files above" >&2
  exit 1
fi
echo "format: ok (${#files[@]} files)"
