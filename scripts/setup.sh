#!/usr/bin/env bash
# Installs what thimble needs to build and test on Debian or Ubuntu, and does nothing when it is all there.
# Usage: scripts/setup.sh [further packages]
#   lab: what builds the lab; mpi: Open MPI and MPICH, for the preset mpi; cluster: a Slurm, for scripts/test.sh -L cluster
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config git libopenblas-dev libfmt-dev libyaml-cpp-dev libhwy-dev
  librandom123-dev libcli11-dev libeigen3-dev nlohmann-json3-dev libxxhash-dev catch2)
for package in "$@"; do
  case $package in
    mpi) packages+=(libopenmpi-dev openmpi-bin libmpich-dev mpich) ;;
    lab)
      packages+=(emscripten libc++-16-dev-wasm32 node-acorn)
      command -v npm >/dev/null || packages+=(nodejs npm) # others may bring both in one package
      command -v chromium >/dev/null || packages+=(chromium)
      command -v firefox-esr firefox >/dev/null || packages+=(firefox-esr)
      ;;
    cluster) packages+=(munge slurm-client slurmctld slurmd) ;;
    *) packages+=("$package") ;;
  esac
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  cat >&2 <<'NOTE'
setup: no apt on this system, so nothing was installed. thimble needs: a C++20
  compiler, CMake 3.25, Ninja, pkg-config, and the libraries OpenBLAS
  (with cblas), fmt, yaml-cpp, Highway, Random123, CLI11, Eigen, nlohmann-json,
  xxHash and Catch2, with their headers. CMake names whichever is missing.
NOTE
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>/dev/null || true)
  [[ " $state" == *" installed "* ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "setup: every package is installed"
  exit 0
fi

as_root=(env)
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: packages are missing and this is neither root nor a user with sudo. As root, run:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo env)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive LC_ALL=C \
    apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}

echo "setup: installing with apt-get: ${missing[*]}" | fold -s -w 78
apt update || true  # one broken third-party source must not stop us: the installation decides
if ! apt install --yes --no-install-recommends "${missing[@]}"; then
  tail -n 20 "$log" >&2
  echo "setup: apt-get could not install what is missing (reason above)" >&2
  exit 1
fi
