#!/usr/bin/env bash
# Compares COUNT random models with everything that their numbers can be compared with: see architecture_fuzz.cpp, and
# architecture_torch.py where Debian's PyTorch is (scripts/setup.sh python3-torch).
# Usage: architecture.sh PROGRAM SOURCE_DIR COUNT FIRST_SEED [--json FILE]
set -euo pipefail
program=$1 source=$2 count=$3 seed=$4 json=
[[ ${5:-} != --json ]] || json=$(realpath -m "$6")
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OPENBLAS_NUM_THREADS=1

torch=()
if "$python" -c 'import numpy, torch' 2>/dev/null; then
  mkdir "$work/torch"
  torch=(--torch "$work/torch")
fi
status=0
"$program" "$count" "$seed" --json "$work/program.json" "${torch[@]}" || status=1
echo null >"$work/torch.json"
if ((${#torch[@]} > 0)); then
  "$python" -B "$source/tests/fuzz/architecture_torch.py" "$source" --json "$work/torch.json" \
    "$work"/torch/*.safetensors || status=1
else
  echo "PyTorch: not compared, as $python has no modules numpy and torch"
fi
if [[ -n ${THIMBLE_NUMBERS:-} ]]; then
  count_of() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$2"; }
  {
    printf 'random models\t%d\n' "$(count_of architectures "$work/program.json")"
    printf 'random models with numerical gradients\t%d\n' "$(count_of architectures_with_numerical_gradients "$work/program.json")"
    printf 'random models: gradients compared with numerical ones\t%d\n' "$(count_of gradients_checked "$work/program.json")"
    printf 'random models: gradients called wrong\t%d\n' "$(count_of gradients_wrong "$work/program.json")"
    printf 'random models: gradients undecided, but not 0\t%d\n' "$(count_of gradients_undecided "$work/program.json")"
    printf 'random models: gradients undecided, as they are 0\t%d\n' "$(count_of gradients_undecided_as_zero "$work/program.json")"
    ((${#torch[@]} == 0)) || printf 'random models compared with PyTorch\t%d\n' "$(count_of architectures "$work/torch.json")"
    printf 'random models with findings\t%d\n' "$(count_of architectures_with_findings "$work/program.json")"
  } >>"$THIMBLE_NUMBERS"
fi
if [[ -n $json ]]; then
  printf '{"date": "%s", "commit": "%s",\n"program": %s,\n"torch": %s}\n' "$(date -I)" \
    "$(git -C "$source" rev-parse --short HEAD 2>/dev/null || echo unknown)" \
    "$(<"$work/program.json")" "$(<"$work/torch.json")" >"$json"
fi
exit $status
