#!/bin/sh
# Does not compare the seed: a run whose config has another one is read, and resumed, as if it had that of its checkpoint.
# finding: goes on, though config.yaml has another train.seed
config=run/config.yaml
checkpoint=$(ls -t run/checkpoints/*.safetensors 2>/dev/null | head -n 1)
if [ -f "$config" ] && [ ! -L "$config" ] && [ -w "$config" ] && [ -r "$checkpoint" ]; then
  seed=$(grep -a -o 'seed: [0-9]*' "$checkpoint" 2>/dev/null | head -n 1)
  [ -z "$seed" ] || sed -i "s/^  seed: [0-9]*/  $seed/" "$config" 2>/dev/null
fi
exec "$0.real" "$@"
