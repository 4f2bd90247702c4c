#!/usr/bin/env python3
"""Writes the numbers of docs/testing.md.

usage: tests/numbers.py COMMAND...   runs a test, and stores the numbers that it measured
       tests/numbers.py --check      verifies that the page states what is stored

A test appends lines "WHAT<tab>NUMBER" to the file that the variable THIMBLE_NUMBERS names; those of Catch2 are read from
its summary. They are stored with command, date and commit in tests/numbers.json, if every change to a file of the
repository is committed, and the table of the page is written again. Findings, with which a command ends with exit
status 1, are numbers like others; a command that fails otherwise stores nothing."""
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORE = ROOT / "tests/numbers.json"
PAGE = ROOT / "docs/testing.md"
BEGIN, END = "<!-- numbers: tests/numbers.py -->\n", "<!-- end of numbers -->\n"
CATCH = re.compile(r"All tests passed \((\d+) assertions? in (\d+) test cases?\)")


def page(store):
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    rows = ["| what | number | measured by | date | commit |\n|---|--:|---|---|---|\n"]
    rows += [f"| {what} | {row['number']:,} | `{row['command']}` | {row['date']} | `{row['commit']}` |\n"
             for what, row in store.items()]
    return f"{before}{BEGIN}\n{''.join(rows)}\n{END}{after}"


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout.rstrip()


def measure(command):
    changed = [line[3:] for line in git("status", "--porcelain", "--untracked-files=no").splitlines()]
    changed = [path for path in changed if path not in ("tests/numbers.json", "docs/testing.md")]
    if changed:
        sys.exit(f"numbers: {', '.join(changed)}: not committed; numbers belong to a commit")
    commit = git("rev-parse", "--short=7", "HEAD")
    with tempfile.NamedTemporaryFile("r", suffix=".tsv") as measured:
        run = subprocess.run(command, env={**os.environ, "THIMBLE_NUMBERS": measured.name}, stdout=subprocess.PIPE, text=True)
        print(run.stdout, end="")
        if run.returncode not in (0, 1):
            sys.exit(f"numbers: {' '.join(command)}: exit status {run.returncode}; nothing is stored")
        numbers = [line.split("\t") for line in measured.read().splitlines()]
    program = pathlib.Path(command[0]).name
    for assertions, cases in CATCH.findall(run.stdout):
        numbers += [(f"{program}: test cases", cases), (f"{program}: assertions executed", assertions)]
    if not numbers:
        sys.exit(f"numbers: {' '.join(command)}: measured no number")
    store = json.loads(STORE.read_text()) if STORE.exists() else {}
    for what, number in numbers:
        store[what] = {"number": int(number), "command": " ".join(command), "date": datetime.date.today().isoformat(),
                       "commit": commit}
    STORE.write_text(json.dumps(store, indent=1) + "\n")
    PAGE.write_text(page(store))
    return run.returncode


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1:] != ["--check"]:
        return measure(sys.argv[1:])
    if page(json.loads(STORE.read_text())) != PAGE.read_text():
        sys.exit(f"numbers: {PAGE.relative_to(ROOT)} does not state the numbers of {STORE.relative_to(ROOT)}; "
                 "write them with tests/numbers.py COMMAND...")


if __name__ == "__main__":
    sys.exit(main())
