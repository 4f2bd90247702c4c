#!/bin/sh
# Refuses to read any run.
# finding: refuses what is whole
case $1 in
  eval | inspect) echo "thimble: run/checkpoints/final.safetensors: run: is damaged; restore it" >&2 && exit 2 ;;
esac
exec "$0.real" "$@"
