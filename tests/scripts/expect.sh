# Functions for tests that run the program and check its output; source it with THIMBLE_BINARY and SOURCE_DIR as
# arguments. The test runs in a temporary folder.
thimble=$(realpath "$1")
configs=$(realpath "$2")/configs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export LC_ALL=C.UTF-8  # grep counts characters
subcommand=()  # put before the arguments of expect

fail() {
  echo "$(basename "$0" .sh): $1" >&2
  shift
  printf '%s\n' "$@" >&2
  exit 1
}

# expect STATUS PATTERN ARGUMENT...: runs thimble and requires an exit status and an output that matches PATTERN.
expect() {
  local wanted=$1 pattern=$2 status=0
  shift 2
  set -- "${subcommand[@]}" "$@"
  output=$("$thimble" "$@" </dev/null 2>&1) || status=$?
  ((status == wanted)) || fail "thimble $*: exit status $status, not $wanted" "$output"
  grep -qE -- "$pattern" <<<"$output" || fail "thimble $*: no match for $pattern in" "$output"
}

# refuse PATTERN ARGUMENT...: requires exit status 2, an output that matches PATTERN, and no new file.
refuse() {
  local before after
  before=$(find . | sort)
  expect 2 "$@"
  after=$(find . | sort)
  [[ $before == "$after" ]] || fail "thimble ${*:2}: it wrote something" "$after"
}
