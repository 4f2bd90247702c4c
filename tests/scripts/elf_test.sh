#!/usr/bin/env bash
# What the loader makes of the program, built and installed: it takes libraries from absolute folders only, never from
# the current one, and the program is hardened.
# Usage: elf_test.sh THIMBLE_BINARY BUILD_DIR BUILD_TYPE
set -euo pipefail
program=$(realpath "$1")
build=$(realpath "$2")
type=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")

fail() {
  echo "elf_test: $1" >&2
  exit 1
}

# Libraries without anything in them, in place of all but those of the compiler and the C library: a program that loads
# one of them does not start.
mkdir "$work/planted"
needed=$(readelf -dW "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libstdc\+\+|libgcc_s|ld-.*)\.so')
[[ $needed == *fmt* && $needed == *hwy* ]] || fail "libraries are missing in: $needed"
for library in $needed; do
  "$compiler" -x c++ -shared -fPIC -o "$work/planted/$library" /dev/null
done

absolute_path() {  # PROGRAM
  local path elements element
  path=$(readelf -dW "$1" | sed -nE 's/.*\((RPATH|RUNPATH)\).*\[(.*)\]/\2/p')
  mapfile -d : -t elements < <(printf '%s' "$path")
  [[ $path != *: ]] || elements+=("")  # which the loader sees and mapfile does not
  for element in "${elements[@]}"; do
    [[ $element == /* ]] || fail "$1: RUNPATH [$path] holds [$element], which is not absolute"
  done
}

check() {  # PROGRAM
  local dynamic segments header symbols
  dynamic=$(readelf -dW "$1")
  segments=$(readelf -lW "$1")
  header=$(readelf -hW "$1")
  symbols=$(readelf -sW --dyn-syms "$1")

  (
    cd "$work/planted"
    if LD_LIBRARY_PATH=. "$1" --version >/dev/null 2>&1; then fail "$1 runs with planted libraries"; fi
    said=$("$1" --version 2>&1) || fail "$1 does not run: $said"
    [[ $said == "thimble "* ]] || fail "$1 loads a library from the current directory: $said"
  )
  absolute_path "$1"
  grep -q 'Type: *DYN' <<<"$header" || fail "$1 is not position-independent"
  grep -q 'Flags: .*\bPIE\b' <<<"$dynamic" || fail "$1 is not a position-independent executable"
  grep -q GNU_RELRO <<<"$segments" || fail "$1: no RELRO"
  grep -q 'Flags: .*\bNOW\b' <<<"$dynamic" || fail "$1: RELRO is partial, without BIND_NOW"
  grep -qE 'GNU_STACK.* RW ' <<<"$segments" || fail "$1: the stack is executable"
  grep -q '__stack_chk_fail' <<<"$symbols" || fail "$1: no stack protector"
  [[ $type == Debug ]] || grep -qE '__[a-z_0-9]+_chk|__open_2' <<<"$symbols" || fail "$1: no _FORTIFY_SOURCE"
  if grep -q 'X86-64' <<<"$header"; then
    # Code is compiled for control-flow protection where the program has the note of it, and nowhere else.
    local targets note=no
    targets=$(objdump -d --no-show-raw-insn "$1" | grep -c endbr64) || true
    ! readelf -nW "$1" | grep -q 'x86 feature: IBT, SHSTK' || note=yes
    [[ $note == yes && $targets -gt 1000 || $note == no && $targets -lt 100 ]] ||
      fail "$1: control-flow protection: note: $note, $targets targets of jumps"
  fi
}

check "$program"
while read -r test_program; do absolute_path "$test_program"; done < <(find "$build/tests" -maxdepth 1 -type f -perm -u+x)
cmake --install "$build" --prefix "$work/prefix" >/dev/null
check "$work/prefix/bin/thimble"
echo "elf_test: ok"
