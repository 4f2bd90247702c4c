#!/usr/bin/env python3
"""Writes the numbers of docs/testing.md.

usage: tests/numbers.py COMMAND...   runs a test, and writes the numbers that it measured
       tests/numbers.py --check      verifies that each row of the page is as one that it writes

A test appends lines "WHAT<tab>NUMBER" to the file that the variable THIMBLE_NUMBERS names; those of Catch2 are read from
its summary. They are written into the table of the page with command, date and commit, if every change to a file of the
repository is committed. Findings, with which a command ends with exit status 1, are numbers like others; a command that
fails otherwise writes nothing."""
import datetime
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/testing.md"
BEGIN, END = "<!-- numbers: tests/numbers.py -->\n", "<!-- end of numbers -->\n"
HEAD = "\n| what | number | measured by | date | commit |\n|---|--:|---|---|---|\n"
ROW = re.compile(r"\| (.+?) \| ([\d,]+) \| `(.+)` \| (\d{4}-\d\d-\d\d) \| `([0-9a-f]{7})` \|")
CATCH = re.compile(r"All tests passed \((\d+) assertions? in (\d+) test cases?\)")


def read():
    """The text before the table, its rows by what they number, and the text after it."""
    before, rest = PAGE.read_text().split(BEGIN)
    table, after = rest.split(END)
    rows = {}
    for line in table.removeprefix(HEAD).split("\n")[:-2]:
        row = ROW.fullmatch(line)
        if not row or f"{int(row[2].replace(',', '')):,}" != row[2] or row[1] in rows:
            sys.exit(f"numbers: {PAGE.relative_to(ROOT)}: not a row that tests/numbers.py COMMAND... writes, or twice: {line}")
        rows[row[1]] = line
    return before, rows, after


def page(before, rows, after):
    return f"{before}{BEGIN}{HEAD}" + "".join(f"{row}\n" for row in rows.values()) + f"\n{END}{after}"


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True).stdout.rstrip()


def measure(command):
    changed = [line[3:] for line in git("status", "--porcelain", "--untracked-files=no").splitlines()]
    changed = [path for path in changed if path != "docs/testing.md"]
    if changed:
        sys.exit(f"numbers: {', '.join(changed)}: not committed; numbers belong to a commit")
    commit = git("rev-parse", "--short=7", "HEAD")
    with tempfile.NamedTemporaryFile("r", suffix=".tsv") as measured:
        run = subprocess.run(command, env={**os.environ, "THIMBLE_NUMBERS": measured.name}, stdout=subprocess.PIPE, text=True)
        print(run.stdout, end="")
        if run.returncode not in (0, 1):
            sys.exit(f"numbers: {' '.join(command)}: exit status {run.returncode}; nothing is written")
        numbers = [line.split("\t") for line in measured.read().splitlines()]
    program = pathlib.Path(command[0]).name
    for assertions, cases in CATCH.findall(run.stdout):
        numbers += [(f"{program}: test cases", cases), (f"{program}: assertions executed", assertions)]
    if not numbers:
        sys.exit(f"numbers: {' '.join(command)}: measured no number")
    before, rows, after = read()
    for what, number in numbers:
        rows[what] = f"| {what} | {int(number):,} | `{' '.join(command)}` | {datetime.date.today()} | `{commit}` |"
    PAGE.write_text(page(before, rows, after))
    return run.returncode


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1:] != ["--check"]:
        return measure(sys.argv[1:])
    if page(*read()) != PAGE.read_text():
        sys.exit(f"numbers: {PAGE.relative_to(ROOT)}: the table is not as tests/numbers.py COMMAND... writes it")


if __name__ == "__main__":
    sys.exit(main())
