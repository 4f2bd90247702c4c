#!/usr/bin/env bash
# An installed program has its configs, its completions and its page of the manual, whatever folder it is used in.
# Usage: install_test.sh THIMBLE_BINARY SOURCE_DIR BUILD_DIR [package]
#   package: what dpkg installs from the package into a root of its own; skipped (77) where packages cannot be made
set -euo pipefail
build=$(realpath "$3")
source "$(dirname "$0")/expect.sh" "$1" "$2"
if [[ ${4:-} == package ]]; then
  for tool in cpack dpkg-deb dpkg-shlibdeps file; do
    command -v "$tool" >/dev/null || { echo "package: skipped: no $tool"; exit 77; }
  done
  cpack --config "$build/CPackConfig.cmake" -G DEB -B "$work/made" >log 2>&1 || fail "no package" "$(cat log)"
  package=$(echo "$work"/made/*.deb)
  mkdir -p root/var/lib/dpkg/updates root/var/lib/dpkg/info
  touch root/var/lib/dpkg/status
  dpkg --root="$work/root" --log=/dev/null --force-not-root --force-depends --install "$package" >log 2>&1 ||
    fail "it is not installed" "$(cat log)"
  depends=$(dpkg-deb --field "$package" Depends)
  for library in libc6 libstdc++6 libopenblas libfmt libyaml-cpp libhwy; do
    [[ ,${depends// /} == *",$library"* ]] || fail "the package does not depend on $library" "$depends"
  done
  for file in share/doc/thimble/{copyright,changelog.gz} include/thimble/train/train.h include/thimble/inspect.h lib/libthimble_train.a lib/cmake/thimble/thimble-config.cmake; do
    [[ -s root/usr/$file ]] || fail "the package has no $file"
  done
  mv root/usr moved
else
  cmake --install "$build" --prefix "$work/prefix" >log 2>&1 || fail "install" "$(cat log)"
  mv prefix moved  # nothing in it depends on where it was put
fi
thimble=$work/moved/bin/thimble
mkdir empty && cd empty

expect 0 'test +loss' train reverse train.steps=2 train.schedule.warmup=1 data.validation=10 data.test=10 --out run
grep -q "moved/share/thimble/configs/reverse.yaml\|name: reverse" run/config.yaml || fail "another config" "$(cat run/config.yaml)"
expect 0 '^  name: ' config show bench/micro
expect 0 reverse reproduce --list
expect 0 '^reverse$' complete thimble train ''
refuse "no such config; searched nothing, configs/nothing.yaml, .*$work/moved/share/thimble/configs/nothing.yaml$" train nothing
share=$work/moved/share
for pair in 'bash bash-completion/completions/thimble' 'zsh zsh/site-functions/_thimble' \
  'fish fish/vendor_completions.d/thimble.fish'; do
  read -r shell file <<<"$pair"
  "$thimble" completion "$shell" | cmp - "$share/$file" || fail "the installed completion of $shell is another"
done
"$thimble" manual | cmp - <(zcat -f "$share"/man/man1/thimble.1*) || fail "the installed page of the manual is another"
echo "install_test: ok"
