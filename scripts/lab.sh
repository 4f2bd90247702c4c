#!/usr/bin/env bash
# Builds the lab, build/lab/thimble-lab.html: the engine in WebAssembly and its page in one file.
# Usage: scripts/lab.sh [test | browsers]
#   test: also runs the tests of the engine in Node; browsers: those of the page in Chromium and Firefox. Both need
#   build/release/thimble.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${1:-build}
case $mode in
  build) ;;
  test | browsers)
    [[ -x build/release/thimble ]] ||
      { echo "lab: build/release/thimble is missing, with which the tests compare; run scripts/build.sh" >&2; exit 2; }
    ;;
  *)
    echo "lab: unknown argument $mode: must be test or browsers, or be left out" >&2
    exit 2
    ;;
esac

build=build/lab
{ command -v emcc && command -v npm && [[ -d /usr/include/eigen3 && -d /usr/share/nodejs/acorn ]] &&
  [[ -d /usr/lib/llvm-16/include/wasm32-wasi ]]; } >/dev/null || scripts/setup.sh lab

# Debian's emscripten has its libraries still to build, which takes minutes, once; EM_CACHE is where it keeps them.
mkdir -p $build/npm
sed 's/^FROZEN_CACHE *=.*/FROZEN_CACHE = False/' /usr/share/emscripten/.emscripten >$build/emscripten.py
export EM_CONFIG=$PWD/$build/emscripten.py EM_CACHE=${EM_CACHE:-$PWD/$build/emscripten} NODE_PATH=/usr/share/nodejs
[[ -f $build/build.ninja ]] || cmake --preset lab
cmake --build --preset lab

# The lock file has the hashes of all packages. To change one: npm install --package-lock-only --ignore-scripts
# --omit-lockfile-registry-resolved in src/addons/lab/page.
packages=(src/addons/lab/page/package.json src/addons/lab/page/package-lock.json)
if ! cat "${packages[@]}" | cmp -s - $build/npm/installed; then
  cp "${packages[@]}" $build/npm/
  npm ci --prefix $build/npm --ignore-scripts --no-audit --no-fund
  cat "${packages[@]}" >$build/npm/installed
fi
NODE_PATH=$PWD/$build/npm/node_modules $build/npm/node_modules/.bin/esbuild src/addons/lab/worker.js --bundle --minify --format=iife \
  --log-level=warning --outfile=$build/worker.js
node src/addons/lab/page/build.mjs $build/npm $build/worker.js $build/src/addons/lab/lab.wasm $build/thimble-lab.html

if [[ $mode == test ]]; then node --test tests/addons/lab/{engine,data,opening,page,archive,client}_test.mjs; fi
if [[ $mode == browsers ]]; then
  browsers=()
  for name in chromium firefox; do
    path=$(command -v $name || command -v $name-esr) || { echo "lab: no $name; on Debian: scripts/setup.sh chromium firefox-esr" >&2 && exit 1; }
    browsers+=("$name=$path")
  done
  node tests/addons/lab/browser_test.mjs $build build/release/thimble "${browsers[@]}"
fi
