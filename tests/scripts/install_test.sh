#!/usr/bin/env bash
# An installed program has its configs, its completions and its page of the manual, whatever folder it is used in.
# Usage: install_test.sh THIMBLE_BINARY SOURCE_DIR BUILD_DIR
set -euo pipefail
build=$(realpath "$3")
source "$(dirname "$0")/expect.sh" "$1" "$2"
cmake --install "$build" --prefix "$work/prefix" >log 2>&1 || fail "install" "$(cat log)"
mv "$work/prefix" "$work/moved"  # nothing in it depends on where it was put
thimble=$work/moved/bin/thimble
mkdir empty && cd empty

expect 0 'test +loss' train reverse train.steps=2 train.schedule.warmup=1 data.validation=10 data.test=10 --out run
grep -q "moved/share/thimble/configs/reverse.yaml\|name: reverse" run/config.yaml || fail "another config" "$(cat run/config.yaml)"
expect 0 '^  name: ' config show bench/micro
expect 0 reverse reproduce --list
expect 0 '^reverse$' completion --names configs
refuse "no such config; searched nothing, configs/nothing.yaml, .*$work/moved/share/thimble/configs/nothing.yaml$" train nothing
share=$work/moved/share
for pair in 'bash bash-completion/completions/thimble' 'zsh zsh/site-functions/_thimble' \
  'fish fish/vendor_completions.d/thimble.fish'; do
  read -r shell file <<<"$pair"
  "$thimble" completion "$shell" | cmp - "$share/$file" || fail "the installed completion of $shell is another"
done
"$thimble" manual | cmp - "$share/man/man1/thimble.1" || fail "the installed page of the manual is another"
echo "install_test: ok"
