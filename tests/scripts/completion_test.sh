#!/usr/bin/env bash
# Shell completion of command lines. A missing shell is skipped.
# Usage: completion_test.sh THIMBLE_BINARY SOURCE_DIR bash|zsh|fish
set -euo pipefail
shell=$3
if ! command -v "$shell" >/dev/null; then
  echo "completion_test: skipped, there is no $shell (apt-get install $shell)"
  exit 77
fi
source "$(dirname "$0")/expect.sh" "$1" "$2"
mkdir bin && ln -s "$thimble" bin/thimble
export PATH=$work/bin:$PATH HOME=$work
mkdir -p runs/first 'runs/a second' elsewhere project/checkpoints
printf '{"format": "thimble 3"}' >runs/first/data.json
printf '{"a":\n1, "format"\n:\t"thimble 3"}' >'runs/a second/data.json'
printf '{"format": "another"}' >elsewhere/data.json
touch project/config.yaml project/metrics.jsonl mine.yaml notes.txt
mkfifo runs/pipe && mkdir runs/piped && mkfifo runs/piped/data.json
"$thimble" completion "$shell" >script

# offers LINE: prints the completions of the last word of LINE.
case $shell in
  bash)
    offers() {
      local words
      read -ra words <<<"$1"
      [[ $1 != *' ' ]] || words+=('')
      bash -c 'compopt() { :; }; source ./script; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _thimble; printf "%s\n" "${COMPREPLY[@]}"' \
        bash script "${words[@]}"
    }
    ;;
  fish) offers() { fish --no-config -c 'source ./script; complete -C $argv[1]' -- "$1" | cut -f 1; } ;;
  zsh)
    cat >driver.zsh <<'ZSH'
zmodload zsh/zpty
zpty -b shell zsh -f -i
read_until() {  # PATTERN: appends the output of the shell to $seen until it matches
  seen=
  local piece
  for _ in {1..600}; do
    while zpty -r -t shell piece; do seen+=$piece; done
    [[ $seen == *$~1* ]] && return
    sleep 0.05
  done
  print -r -- "no $1 in: $seen" >&2
  exit 1
}
zpty -w shell "PROMPT='READY> '; unsetopt zle_bracketed_paste; stty columns 300 rows 100; LISTMAX=0"
zpty -w shell "autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' list-prompt ''; source ./script; print -r LO''ADED"
read_until 'LOADED*READY>'
zpty -w -n shell $'\C-u'"$1"$'\C-d'
zpty -w -n shell $'\C-a\C-kprint -r DO""NE\n'
read_until DONE
print -r -- "$seen" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g' | tr -s ' \r' '\n' | sed 's/[=/]$//'
ZSH
    offers() { zsh -f driver.zsh "$1"; }
    ;;
esac

check() {  # LINE NAME...: requires that each NAME is offered, or is not offered if it starts with !
  local line=$1 got name
  shift
  got=$(offers "$line") || fail "$shell fails on '$line'" "$got"
  for name in "$@"; do
    if [[ $name == !* ]]; then
      ! grep -qxF -e "${name#!}" <<<"$got" || fail "$shell offers ${name#!} for '$line'" "$got"
    else
      grep -qxF -e "$name" <<<"$got" || fail "$shell does not offer $name for '$line'" "$got"
    fi
  done
}

check 'thimble ' train inspect config !--out !show
check 'thimble t' train tasks
check 'thimble config s' show schema !sweep
check 'thimble train --' --out --threads --json !--html !--version
check 'thimble inspect --' --html --patch
check 'thimble compare --' --html --all --json
check 'thimble config show --' --json !--threads
check 'thimble tasks rev' reverse
check 'thimble eval --split v' validation
check 'thimble completion ' bash zsh fish
check 'thimble train re' reverse
check 'thimble train m' mine.yaml !notes.txt
if [[ $shell != zsh ]]; then  # for zsh, offers() removes = and / at the end
  check 'thimble train reverse model.h' model.heads=
fi
check 'thimble gradcheck bench/mi' bench/micro
check 'thimble eval runs/' runs/first !runs/piped
check 'thimble compare runs/first runs/f' runs/first
if [[ $shell == bash ]]; then
  check 'thimble eval ' runs/first 'runs/a second' !elsewhere !project !runs/piped
  check 'thimble compare runs/first ' runs/first !elsewhere
  check 'thimble eval e' elsewhere  # no run, so every directory
  check 'thimble train --out e' elsewhere
  check 'thimble train --threads 2 ' reverse !model.heads=
fi
echo "completion_test: ok ($shell)"
