#!/usr/bin/env python3
"""Tries small wrong changes to the code, one at a time, and reports which of them no test notices.

usage: scripts/mutate.py [--seed N] FILE...      makes changes of files under src/ (made_changes.py says which)
       scripts/mutate.py [--seed N] --diff BASE  makes changes of the lines under src/ that differ from commit BASE
       scripts/mutate.py --list [--again] [FILTER...]
       scripts/mutate.py --check

Of the changes made, at most 200 are tried, drawn by the seed. They are tried with the tests that mention the file: those
with its name, then those that include its header and use a function or class that it defines; for the program, with
the shell test `cases` too.
--list tries the changes in tests/mutations.txt, which explains its format; FILTER keeps those of files whose path contains
it. Results are appended to DIR/mutations/results.txt as they come; changes that have one are skipped next time, unless
--again is given. --check only verifies that list: every change has its place in the code, once, and its tests exist.

The sources are never edited: copies are, in DIR/mutations. A copy holds all changes of its file, each behind the
environment variable THIMBLE_MUTATION, so that one compilation and one link serve many changes. The object files and the
tests come from DIR, build/release by default (--build), which is first built from the commit that is checked out.
The status is 1 if a change survived that the list does not call equivalent."""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import time

from made_changes import code_of, made_changes
from mutated_build import LINKED, ROOT, Builder

LIST = ROOT / "tests/mutations.txt"
LEAST = 300
MOST = 200
TESTED = ("engine", "train", "inspect", "program", "addons/cluster")
CHANGE = re.compile(r"\{\{(.*?) => (.*?)\}\}")


class Change:
    is_condition = False

    def __init__(self, line, path, tests, text):
        self.line, self.path, self.tests, self.text = line, path, tests, text
        self.equivalent = None
        found = CHANGE.search(text)
        if not found:
            raise ValueError(f"{LIST.name}:{line}: no {{{{old => new}}}}")
        self.before, self.after = text[:found.start()], text[found.end():]
        self.old, self.new = found.groups()
        self.key = f"{path}: {text}"

    def span(self, source):
        """Where the old text stands; white space may be any."""
        def pattern(text):
            return r"\s+".join(re.escape(word) for word in re.split(r"\s+", text))
        expression = f"{pattern(self.before)}(?P<old>{pattern(self.old)}){pattern(self.after)}"
        found = list(re.finditer(expression, source))
        if len(found) != 1:
            raise ValueError(f"{LIST.name}:{self.line}: {self.path} has {len(found)} places for this, not 1: {self.text}")
        return found[0].span("old")


class Made(Change):
    def __init__(self, path, source, made):
        at, self.begin, self.end, self.new, self.is_condition = made
        self.path, self.line, self.equivalent = path, source.count("\n", 0, at) + 1, None
        old, new = (" ".join(text.split()) for text in (source[self.begin:self.end], self.new))
        self.key = f"{path}:{self.line}: {{{{{old} => {new}}}}}"

    def span(self, source):
        return self.begin, self.end


def applied(change, source):
    """The changed source, in one spacing."""
    begin, end = change.span(source)
    return " ".join((source[:begin] + change.new + source[end:]).split())


def read_changes():
    changes, path, tests = [], None, None
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("== "):
            path, *tests = line[3:].split()
        elif line.startswith("equivalent: "):
            changes[-1].equivalent = line.removeprefix("equivalent: ")
        else:
            changes.append(Change(number, path, tests, line.strip()))
    return changes


def check(changes):
    problems = []
    if len(changes) < LEAST:
        problems.append(f"{LIST.name}: {len(changes)} changes, there must be {LEAST}")
    if len({c.key for c in changes}) < len(changes):
        problems.append(f"{LIST.name}: a change is there twice")
    for change in changes:
        try:
            change.span((ROOT / change.path).read_text())
            if change.old == change.new:
                raise ValueError(f"{LIST.name}:{change.line}: nothing changes")
            for test in change.tests:
                suffix = f"scripts/{test}_test.sh" if "/" not in test else f"{test}.cpp"
                if not (ROOT / "tests" / suffix).exists():
                    raise ValueError(f"{LIST.name}:{change.line}: there is no tests/{suffix}")
        except (OSError, ValueError) as error:
            problems.append(str(error))
    return problems


def tests_of(path):
    """The tests of a source: those with its name, then those that include its header and use what it defines; those of its
    room if there are none; of the program, the shell test `cases` last."""
    name, (_, floor, room, *_) = pathlib.PurePath(path).stem.removesuffix("-inl"), path.split("/")
    source = (ROOT / path).read_text()
    headers = [h for h in re.findall(r'^#include "(.*)"', source, re.MULTILINE)
               if f"{name}_".startswith(pathlib.PurePath(h).stem + "_")] + [path.removeprefix("src/")]
    code = code_of(source)
    defined = set(re.findall(r"^(?:[\w:<>,&* ]*[ *&])?([A-Za-z]\w*)(?:::~?\w+)*\(", code, re.MULTILINE))
    defined.update(re.findall(r"^(?:class|struct) (\w+)", code, re.MULTILINE))
    named, others, near = [], [], []
    for file in sorted(f for part in TESTED for f in (ROOT / "tests" / part).rglob("*_test.cpp")):
        text, test = file.read_text(), str(file.relative_to(ROOT / "tests").with_suffix(""))
        own = file.stem.removesuffix("test")
        if test.startswith(floor + "/") and (own.startswith(name + "_") or f"{name}_".startswith(own)):
            named.append(test)
        elif any(f'#include "{h}"' in text for h in headers) and defined & set(re.findall(r"\w+", text)):
            others.append(test)
        elif test.startswith(f"{floor}/{room}/"):
            near.append(test)
    return named, others if named or others else near, ["cases"] * (floor == "program")


def changed_lines(base):
    """The lines of sources under src that differ from a commit, by path."""
    lines, path = {}, None
    diff = subprocess.run(["git", "diff", "-U0", "--no-ext-diff", base, "--", "src"], cwd=ROOT, text=True,
                          capture_output=True, check=True).stdout
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first = int(found[1])
            lines.setdefault(path, set()).update(range(first, first + int(found[2] or 1)))
    return {path: lines[path] for path in sorted(lines) if path.endswith((".cpp", ".h"))}


def draw(lines, seed):
    """Changes made of files, of all lines or of those that are given, without those that the list calls equivalent."""
    made = []
    for path, wanted in lines.items():
        source = (ROOT / path).read_text()
        equivalent = {applied(c, source) for c in read_changes() if c.path == path and c.equivalent}
        changes = [Made(path, source, change) for change in made_changes(source)]
        made += [c for c in changes if (wanted is None or c.line in wanted) and applied(c, source) not in equivalent]
    drawn = sorted(random.Random(seed).sample(range(len(made)), min(MOST, len(made))))
    print(f"{len(made)} changes made, {len(drawn)} tried (seed {seed})", flush=True)
    return [made[i] for i in drawn]


def build_commit(build):
    status = subprocess.run(["git", "status", "--porcelain", "src", "include", "tests"], cwd=ROOT, text=True,
                            capture_output=True, check=True).stdout
    status = "".join(line for line in status.splitlines(True) if LIST.name not in line)
    if status:
        sys.exit(f"src, include or tests have changes that are not committed:\n{status}Commit or stash them.")
    subprocess.run(["ninja", *LINKED], cwd=build, stdout=subprocess.DEVNULL, check=True)


def try_listed(build, options):
    changes = read_changes()
    build_commit(build)
    builder = Builder(build, changes)
    log = builder.work / "results.txt"
    results = {}
    if log.exists():
        results = dict(line.split("\t")[::-1] for line in log.read_text().splitlines())
    wanted = [(n, c) for n, c in builder.changes if not options.names or any(f in c.path for f in options.names)]
    left = [(n, c) for n, c in wanted if options.again or c.key not in results]
    if left:
        builder.build_all({c.path for _, c in left}, LINKED)
    sound = {}
    with open(log, "a") as out:
        for number, change in left:
            tests = tuple(change.tests)
            if tests not in sound:
                sound[tests] = builder.passes(0, tests, 600)
            if number in builder.refused or not sound[tests]:
                results[change.key] = "does not compile" if number in builder.refused else "tests fail without it"
            else:
                results[change.key] = "survived" if builder.passes(number, tests, 300) else "caught"
                out.write(f"{results[change.key]}\t{change.key}\n")
                out.flush()
            print(f"{results[change.key]:10}{change.key}", flush=True)
    return report(wanted, results)


def report(wanted, results):
    of = {state: [c for _, c in wanted if results[c.key] == state] for state in ("caught", "survived")}
    surprises = [c for c in of["survived"] if not c.equivalent]
    print(f"\n{len(wanted)} changes: {len(of['caught'])} caught, {len(of['survived'])} survived, "
          f"{len(of['survived']) - len(surprises)} of them equivalent")
    write_numbers("wrong changes tried", caught=len(of["caught"]), equivalent=len(of["survived"]) - len(surprises))
    for change in surprises:
        print(f"survived: {LIST.name}:{change.line}: {change.key}")
    for change in of["caught"]:
        if change.equivalent:
            print(f"caught, though called equivalent: {LIST.name}:{change.line}: {change.key}")
    return 1 if surprises or len(of["caught"]) + len(of["survived"]) < len(wanted) else 0


def write_numbers(what, **numbers):
    if file := os.environ.get("THIMBLE_NUMBERS"):
        with open(file, "a") as out:
            out.writelines(f"{what}: {name}\t{number}\n" for name, number in numbers.items())


def try_made(build, lines, seed):
    tests = {path: tests_of(path) for path in lines}
    for path in [path for path in lines if not any(tests[path])]:
        print(f"{path}: left out, as no test mentions it")
        del tests[path], lines[path]
    build_commit(build)
    builder = Builder(build, draw(lines, seed))
    programs = {program for groups in tests.values() for group in groups for program, _ in builder.commands_of(group)}
    builder.build_all({c.path for _, c in builder.changes}, sorted(programs))
    limits, survivors = {}, []
    for path, groups in tests.items():
        begin = time.monotonic()
        if not all(builder.passes(0, group, 600) for group in groups):
            sys.exit(f"{path}: its tests fail without a change")
        limits[path] = 10 + 5 * (time.monotonic() - begin)
        print(f"{path}: {' '.join(sum(groups, []))}", flush=True)
    tried = [(n, c) for n, c in builder.changes if n not in builder.refused]
    for number, change in tried:
        if all(builder.passes(number, group, limits[change.path]) for group in tests[change.path]):
            survivors.append(change)
            print(f"survived: {change.key}", flush=True)
    caught = len(tried) - len(survivors)
    print(f"{caught} caught, {len(survivors)} survived, {len(builder.refused)} do not compile")
    write_numbers("wrong changes made", caught=caught, survived=len(survivors))
    return 1 if survivors else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only verify the list")
    parser.add_argument("--list", action="store_true", help="try the changes of the list")
    parser.add_argument("--again", action="store_true", help="repeat what has a result")
    parser.add_argument("--diff", metavar="BASE", help="make changes of lines that differ from this commit")
    parser.add_argument("--seed", type=int, default=1, help="draws the changes that are tried, of those that are made")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="a build of this commit")
    parser.add_argument("names", nargs="*", metavar="FILE or FILTER", help="sources under src; or parts of paths in the list")
    options = parser.parse_args()
    if problems := check(changes := read_changes()):
        sys.exit("\n".join(problems))
    if options.check:
        print(f"{len(changes)} changes have their places")
        return 0
    build = options.build.resolve()
    if options.list:
        return try_listed(build, options)
    if not options.diff and not options.names:
        parser.error("name files, or --diff BASE, --list, --check")
    lines = changed_lines(options.diff) if options.diff else {
        str(pathlib.Path(name).resolve().relative_to(ROOT)): None for name in options.names}
    return try_made(build, lines, options.seed) if lines else 0


if __name__ == "__main__":
    sys.exit(main())
