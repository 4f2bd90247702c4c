#!/usr/bin/env bash
# Shell completion of command lines. A missing shell is skipped; `program` is what the scripts of all shells call.
# Usage: completion_test.sh THIMBLE_BINARY SOURCE_DIR [program|bash|zsh|fish]
set -euo pipefail
shell=${3:-program}
if [[ $shell != program ]] && ! command -v "$shell" >/dev/null; then
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
[[ $shell == program ]] || "$thimble" completion "$shell" >script

# offers LINE: prints the completions of the last word of LINE.
case $shell in
  program)
    offers() {
      local words
      read -ra words <<<"$1"
      [[ $1 != *' ' ]] || words+=('')
      "$thimble" complete "${words[@]}" | cut -f 1
    }
    ;;
  bash)
    offers() {  # bash makes a word of =, and gives the word after it apart
      local words
      read -ra words <<<"${1//=/ = }"
      [[ $1 != *' ' ]] || words+=('')
      bash -c 'compopt() { :; }; source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); word=${COMP_WORDS[-1]}
        [[ $word != = ]] || word=; _thimble thimble "$word"; printf "%s\n" "${COMPREPLY[@]}"' bash "${words[@]}"
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
print -r -- "$seen" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g' | tr -s ' \r' '\n'
ZSH
    offers() { zsh -f driver.zsh "$1"; }
    ;;
esac

check() {  # LINE NAME...: requires that each NAME is offered, without = or / at its end, or is not if it starts with !
  local line=$1 got name
  shift
  got=$(offers "$line" | sed 's/[=/]$//') || fail "$shell fails on '$line'" "$got"
  for name in "$@"; do
    if [[ $name == !* ]]; then
      ! grep -qxF -e "${name#!}" <<<"$got" || fail "$shell offers ${name#!} for '$line'" "$got"
    else
      grep -qxF -e "$name" <<<"$got" || fail "$shell does not offer $name for '$line'" "$got"
    fi
  done
}

check 'thimble ' train inspect config !--out !show !complete
check 'thimble config ' show schema !train
check 'thimble train --' --out --threads --json !--html !--version
check 'thimble inspect --' --html --json
check 'thimble patch --' --html --edges
check 'thimble trace runs/' runs/first
check 'thimble help tra' train trace
check 'thimble compare --' --html --all --json
check 'thimble config show --' --json !--threads
check 'thimble tasks rev' reverse
check 'thimble eval --split v' validation
check 'thimble eval --split train --' --split
check 'thimble completion ' bash zsh fish
check 'thimble train re' reverse
check 'thimble eval --weights w model.h' model.heads !runs/first
check 'thimble tasks --config names task.le' task.length !reverse
check 'thimble train reverse model.h' model.heads
check 'thimble gradcheck bench/mi' bench/micro
check 'thimble eval runs/' runs/first !runs/piped
check 'thimble compare runs/first runs/f' runs/first
check 'thimble frobnicate ' !train
check 'thimble manual ' --help
if [[ $shell == program ]]; then
  check 'thimble train' train
  check 'thimble train --out x --threads=2 --' --json !--out !--threads
  check 'thimble train ' configs
  check 'thimble train reverse ' keys
  check 'thimble train --out ' directories
  check 'thimble train --json ' files
  check 'thimble train --threads ' N
  check 'thimble train --json=x' files
  check 'thimble eval --split=' --split=validation
  check 'thimble eval --split = v' validation  # as bash divides --split=v
  check 'thimble train --threads = 2 ' reverse !model.heads
  check 'thimble train reverse model.heads = ' !model.heads
  check 'thimble eval ' runs runs/first !elsewhere !runs/piped
  check 'thimble compare runs/first runs/first ' runs/first
  check 'thimble sweep x.yaml -- --ti' !--help
  [[ $("$thimble" complete thimble ins) == *$'\ninspect\tShow what each head'* ]] || fail "commands have no description"
  [[ $("$thimble" complete thimble train --) == *$'\n--out\tRun directory'* ]] || fail "options have no description"
  [[ $("$thimble" complete thimble train reverse '') == *$'\nmodel.heads=\t'[a-z]* ]] || fail "keys have no description"

  # It does nothing else, whatever the words are, and without a result it prints nothing.
  find . >before
  for line in train 'train reverse --out run' 'train reverse --out run ""' 'sweep x -- -- --' 'eval --json=made ' \
    'inspect runs/first --html made' $'train \xff --json made' '--version' '--help' '-- train' '= = =' ''; do
    eval "\"\$thimble\" complete thimble $line" >/dev/null || fail "it fails on '$line'"
  done
  "$thimble" complete >/dev/null || fail "it fails without words"
  find . | diff before - || fail "it writes files"
  ! output=$(THIMBLE_GEMM=none "$thimble" complete thimble tr 2>/dev/null) || fail "it succeeds where no command does"
  [[ -z $output ]] || fail "it prints something when it fails" "$output"
else
  check 'thimble t' train tasks
  check 'thimble config s' show schema !sweep
  check 'thimble train m' mine.yaml !notes.txt
  check 'thimble train reverse model.heads=' !model.layers
fi
if [[ $shell == bash ]]; then
  check 'thimble eval ' runs/first 'runs/a second' !elsewhere !project !runs/piped
  check 'thimble compare runs/first ' runs/first !elsewhere
  check 'thimble eval e' elsewhere  # no run, so every directory
  check 'thimble train --out e' elsewhere
  check 'thimble train --threads 2 ' reverse !model.heads=
  check 'thimble train --threads=2 ' reverse !model.heads=
  check 'thimble eval --split=v' validation
  check 'thimble train --out=' elsewhere !notes.txt
  check 'thimble train --json n' notes.txt
fi
echo "completion_test: ok ($shell)"
