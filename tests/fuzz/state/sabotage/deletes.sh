#!/bin/sh
# Deletes the checkpoints of a run that it refuses to resume.
# finding: refuses, but removes
"$0.real" "$@"
status=$?
case "$status $*" in
  "2 train "*--resume*) rm -f run/checkpoints/*.safetensors ;;
esac
[ $status -lt 128 ] || kill -$((status - 128)) $$
exit $status
