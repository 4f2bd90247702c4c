#!/usr/bin/env bash
# The engine knows no file, no JSON, no YAML, no thread and no environment: no symbol that its library takes from elsewhere
# has to do with them. Usage: engine_test.sh ENGINE_LIBRARY LIBRARY   (the second is that of the rest, which does)
set -euo pipefail

kOutside='YAML|nlohmann|pthread_create|std::thread|U f?open(at|dir)?(64)?$|basic_[io]*f(stream|ilebuf)|filesystem|getenv'
outside() { nm -uC "$1" | grep -E "$kOutside" | sort -u; }

if outside "$1"; then
  echo "engine_test: $1 uses what is above; src/engine knows no file, no JSON, no YAML and no thread" >&2
  exit 1
fi
for name in YAML nlohmann std::thread 'U open' filesystem; do
  grep -q "$name" <<<"$(outside "$2")" || { echo "engine_test: $2 does not use $name, so this test proves nothing" >&2; exit 1; }
done
