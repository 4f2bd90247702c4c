#!/usr/bin/env bash
# Checks the commits after BASE: a subject has at most 72 characters, and a commit that raises a limit of scripts/floors.txt
# says in its body what for: "floor NAME +N: FEATURE, in place of WHAT". Prints commit: rule for each violation.
# Usage: scripts/check_commits.sh [BASE]   (default: the commit that brought this script)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
base=${1:-$(git log --diff-filter=A --format=%H -- scripts/check_commits.sh | tail -n 1)}
[[ -n $base ]] || { echo "commits: this copy has no history"; exit 0; }

# limits COMMIT: "NAME LINES" of each floor and of the whole.
limits() { git show "$1:scripts/floors.txt" | awk '$1 == "floor" { print $2, $3 } $1 == "whole" { print $1, $2 }' | sort; }

failed=0 count=0
violation() { echo "${commit:0:12}: $1"; failed=1; }
for commit in $(git rev-list --no-merges "$base..HEAD"); do
  count=$((count + 1))
  subject=$(git log -1 --format=%s "$commit")
  ((${#subject} <= 72)) || violation "the subject has ${#subject} characters; at most 72"
  while read -r name before after; do
    ((after > before)) || continue
    git log -1 --format=%b "$commit" | grep -qE "^floor $name \+$((after - before)): .+, in place of .+" ||
      violation "raises the limit of $name by $((after - before)); say in the body: floor $name +$((after - before)): FEATURE, in place of WHAT"
  done < <(join <(limits "$commit~") <(limits "$commit"))
done
((failed == 0)) || exit 1
echo "commits: ok ($count)"
