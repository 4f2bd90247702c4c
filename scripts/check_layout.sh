#!/usr/bin/env bash
# Checks the rules of the code base that a compiler does not: which room includes which, where a library or the
# terminal may be used, a gradient check for every op, the size of files and floors, words that gave way to others, paths
# of scripts and tests. Prints file:line: rule for each violation, and the lines of the floors.
# Usage: scripts/check_layout.sh [root]   Needs only find, sort and awk.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "${1:-$here/..}"
export LC_ALL=C

mapfile -t files < <(find include src tests examples python scripts configs docs README.md CONTRIBUTING.md -type f \
  \( -name '*.h' -o -name '*.cpp' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' -o -name CMakeLists.txt -o \
  -name '*.md' -o -name '*.yaml' -o -name '*.js' -o -name '*.mjs' -o -name '*.html' -o -name '*.css' -o \
  -name package-lock.json \) 2>/dev/null | sort)
((${#files[@]} > 0)) || { echo "layout: no sources in $PWD" >&2; exit 1; }

floors=scripts/floors.txt
[[ -f $floors ]] || floors=$here/floors.txt
awk -v floors="$floors" -v words="$here/words.txt" -f "$here/check_layout.awk" "${files[@]}"
