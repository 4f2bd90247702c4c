#!/usr/bin/env bash
# Uses the files that scripts/release.sh has made as people would who have nothing else: the tarball in an empty root folder
# and in its folder, the wheel in a new environment, the Debian package unpacked. Each trains reverse.yaml to the weights
# that README.md shows, and shows its head; how long that took is printed. Root is needed for the empty root folder.
# Usage: scripts/test_release.sh [--twice]   (also builds all again in another folder and compares the bytes)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source=$PWD
work=$(mktemp -d)
trap 'umount "$work"/root/proc "$work"/root/dev/null 2>/dev/null || true; rm -rf "$work"' EXIT
out=$work/runs/head  # in the empty root folder, too

fail() {
  echo "test_release: $1" >&2
  exit 1
}

expected=$(sed -n 's/^weights  *\([0-9a-f]\{16\}\) .*/\1/p' README.md)
[[ -n $expected ]] || fail "README.md shows no hash of the weights of reverse"
hash_of() { sed -n 's/.*"weights_hash": "\([0-9a-f]*\)".*/\1/p' "$1"; }
row() { printf '%-34s %8.1f s to the first head map  %5.1f MB  needs %s\n' "$1" "$2" "$(du --bytes "$3" | awk '{ print $1 / 1e6 }')" "$4"; }

# check WHAT FILE NEEDS COMMAND...: COMMAND ends in the program; it trains, and shows a head.
check() {
  local what=$1 file=$2 needs=$3 begin end
  shift 3
  begin=$(date +%s.%N)
  [[ -z ${prepare:-} ]] || $prepare >"$work/log" 2>&1 || fail "$what: $(cat "$work/log")"
  "$@" train reverse ${keys:-} --out "$out" --quiet --json - >"$work/trained" 2>"$work/log" || fail "$what: $(cat "$work/log")"
  "$@" inspect "$out" >"$work/shown" 2>"$work/log" || fail "$what: $(cat "$work/log")"
  end=$(date +%s.%N)
  [[ $(hash_of "$work/trained") == "$expected" ]] || fail "$what: weights $(hash_of "$work/trained"), expected $expected"
  grep -q '^head 0.0$' "$work/shown" || fail "$what: no head map"
  row "$what" "$(awk "BEGIN { print $end - $begin }")" "$file" "$needs"
  rm -rf "$out"
}

tarball=$(ls dist/thimble-*-linux-"$(uname -m)".tar.gz)
unpack() { mkdir -p "$work/root" && tar --extract --gzip --file "$tarball" --directory "$work/root" --strip-components 1; }
empty_root() {
  unpack
  mkdir -p "$work"/root/{proc,dev} "$work/root$work"
  touch "$work/root/dev/null"
  mount --bind /dev/null "$work/root/dev/null"
  mount -t proc none "$work/root/proc"
}
if [[ $(id -u) == 0 ]]; then
  prepare=empty_root check "tarball, in an empty root folder" "$tarball" "a Linux" \
    env -i "$(command -v chroot)" "$work/root" /bin/thimble
  umount "$work/root/proc" "$work/root/dev/null"
  rm -rf "$work/root"
fi
prepare=unpack check "tarball" "$tarball" "a Linux" "$work/root/bin/thimble"
grep -q '<title>' "$work/root/share/doc/thimble/thimble-lab.html" || fail "the tarball has no lab"
! "$work/root/bin/thimble" bench reverse --steps 5 | grep -q OpenBLAS || fail "a static program speaks of OpenBLAS"
if THIMBLE_GEMM=openblas "$work/root/bin/thimble" gradcheck --op add >"$work/log" 2>&1; then fail "it has OpenBLAS"; fi
grep -q 'openblas: this program was built without OpenBLAS; leave it out$' "$work/log" || fail "$(cat "$work/log")"

if arm=$(ls dist/thimble-*-linux-aarch64.tar.gz 2>/dev/null) && command -v qemu-aarch64 >/dev/null; then
  keys="train.steps=100"  # of 3,900, as qemu is slow
  "$work/root/bin/thimble" train reverse $keys --out "$out" --quiet --json - >"$work/trained"
  rm -rf "$out" "$work/root"
  native=$tarball tarball=$arm
  expected=$(hash_of "$work/trained") prepare=unpack \
    check "tarball for aarch64, under qemu" "$arm" "a Linux, 100 steps" qemu-aarch64 "$work/root/bin/thimble"
  tarball=$native keys=""
fi

if wheel=$(ls dist/thimble-*-manylinux*_"$(uname -m)".whl 2>/dev/null); then
  environment() {
    python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet --no-index "$wheel"
  }
  prepare=environment check "wheel" "$wheel" "Python 3.9" env -C "$work" PATH="$work/venv/bin:$PATH" thimble
  (cd "$work" && env -u THIMBLE PATH=/usr/bin:/bin venv/bin/python -c "
import thimble
assert thimble.program().startswith('$work/venv/'), thimble.program()
print(thimble.train('reverse', {'train.steps': 20, 'train.schedule.warmup': 0}, out='run'))") >"$work/log" 2>&1 ||
    fail "wheel: $(cat "$work/log")"
fi

if package=$(ls dist/thimble_*.deb 2>/dev/null); then
  unpack_deb() { dpkg-deb --extract "$package" "$work/deb"; }
  prepare=unpack_deb check "Debian package" "$package" "$(dpkg-deb --field "$package" Depends | tr -d '\n' | sed 's/([^)]*)//g; s/  */ /g')" \
    "$work/deb/usr/bin/thimble"
fi

if [[ ${1:-} == --twice ]]; then
  git clone --quiet "$source" "$work/again"
  "$work/again/scripts/release.sh" tarball wheel source >/dev/null
  for file in "$work"/again/dist/thimble-*; do
    cmp "$file" "dist/$(basename "$file")" || fail "$(basename "$file") has other bytes when it is built again"
  done
  echo "the same bytes from another folder"
fi
