#!/usr/bin/env bash
# Cross-compiles thimble for 64-bit Arm and runs it under qemu: gradient checks pass, and configs train to the weights of
# tests/bits/hashes.txt. Exits with 77 where the cross compiler or qemu is missing: on Debian, the packages
# g++-aarch64-linux-gnu and qemu-user. The libraries of scripts/setup.sh for arm64 are in /, or in the folder $SYSROOT.
# Usage: tests/scripts/arm64_test.sh [CONFIG...]   (default: every config)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$tool" >/dev/null || { echo "arm64_test: skipped, $tool is missing" >&2; exit 77; }
done
cmake --preset arm64 -DTHIMBLE_BUILD_TESTS=OFF >/dev/null
cmake --build --preset arm64 --target thimble_program

export EMULATOR="qemu-aarch64 -L ${SYSROOT:-}/"
$EMULATOR build/arm64/thimble gradcheck --quiet
tests/scripts/bits_test.sh build/arm64/thimble . "$@"
