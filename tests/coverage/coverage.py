#!/usr/bin/env python3
"""Compares the branches that no test takes with those that coverage.txt names; coverage.sh calls it.

usage: tests/coverage/coverage.py EXPORT.json [--json FILE] [--list]

EXPORT.json is what llvm-cov export writes. A source that is compiled several times, for float and double for instance,
counts once: what one of them takes is taken. --list prints the branches in the format of coverage.txt."""
import argparse
import collections
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "tests/coverage/coverage.txt"
# Every branch of these is taken, or listed. Those of cpu_targets.h ask what this CPU has.
COMPLETE = re.compile(r"src/engine/(tensor|autograd|ops|kernels)/(?!cpu_targets)|include/thimble/engine/|include/thimble/train/config\.h|"
                      r"src/train/(config/|files/checkpoint|runs/(run|training))")
SIDES = {(True, True): "never runs", (True, False): "never true", (False, True): "never false"}


class File:
    def __init__(self, path):
        self.path = path
        self.lines = (ROOT / path).read_text().splitlines()
        self.regions, self.branches = collections.Counter(), {}

    def text(self, place):
        first, column, last, end = place
        lines = self.lines[first - 1:last]
        lines[-1] = lines[-1][:end - 1]
        lines[0] = lines[0][column - 1:]
        text = " ".join(" ".join(lines).split())
        return self.lines[first - 1].strip() if text == ":" else text  # a loop over a range

    def add_branch(self, place, true, false):
        old = self.branches.get(place, (0, 0))
        self.branches[place] = (old[0] + true, old[1] + false)

    def line_counts(self):
        """Whether each line with code runs: the smallest region around its first character decides."""
        counts = {}
        for (first, _, last, _), count in sorted(self.regions.items(), key=lambda item: (item[0][0], -item[0][2])):
            counts.update(dict.fromkeys(range(first, last + 1), count))
        return counts

    def is_constant(self, place):
        """Whether a branch that went neither way belongs to a condition that the compiler knew: code around it runs."""
        around = [(region[2] - region[0], region[3] - region[1], count) for region, count in self.regions.items()
                  if region[:2] <= place[:2] and place[2:] <= region[2:]]
        return bool(around) and min(around)[2] > 0

    def sides(self):
        """The number of branches, without those that the compiler decides."""
        return 2 * sum(taken != (0, 0) or not self.is_constant(place) for place, taken in self.branches.items())

    def missed(self):
        """(what it never is, its text, its line) of each branch."""
        out = []
        for place, (true, false) in sorted(self.branches.items()):
            side = SIDES.get((true == 0, false == 0))
            if side and not (side == "never runs" and self.is_constant(place)):
                out.append((side, self.text(place), place[0]))
        return out


def read_export(path):
    files = {}
    for function in json.loads(path.read_text())["data"][0]["functions"]:
        names = [pathlib.Path(name).resolve() for name in function["filenames"]]  # the engine is read through links
        inside = [str(name.relative_to(ROOT)) if name.is_relative_to(ROOT) else "" for name in names]
        for *place, count, index, _, kind in function["regions"]:
            if kind == 0 and re.match("(src|include)/", inside[index]):
                files.setdefault(inside[index], None)
                files[inside[index]] = files[inside[index]] or File(inside[index])
                files[inside[index]].regions[tuple(place)] += count
        for *place, true, false, index, _, _ in function["branches"]:
            if files.get(inside[index]):
                files[inside[index]].add_branch(tuple(place), true, false)
    return files


def read_list():
    """The branches that the list names, as a counter of (file, side, text)."""
    named, path = collections.Counter(), None
    reason = True
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if line.startswith("== "):
            path = line[3:].strip()
        elif line.startswith("  "):
            reason = True
        elif line and not line.startswith("#"):
            side, _, text = line.partition(": ")
            if path is None or side not in SIDES.values() or not reason:
                raise SystemExit(f"{LIST.name}:{number}: not `== FILE`, `never true: CONDITION` and an indented reason")
            named[path, side, text] += 1
            reason = False
    return named


def room_of(path):
    return re.match(r"(?:include/thimble|src)/((?:engine/)?[a-z]+)", path)[1]


def share(covered, all_of):
    return f"{covered:6} of {all_of:6} {100 * covered / max(all_of, 1):6.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    files = read_export(args.export)

    rooms = collections.defaultdict(lambda: collections.Counter())
    missed = collections.Counter()
    where = {}
    for path, file in sorted(files.items()):
        room, lost = rooms[room_of(path)], file.missed()
        lines = file.line_counts()
        room.update(regions=len(file.regions), regions_run=sum(count > 0 for count in file.regions.values()),
                    lines=len(lines), lines_run=sum(count > 0 for count in lines.values()),
                    branches=file.sides(),
                    branches_taken=file.sides() - sum(2 if side == "never runs" else 1 for side, _, _ in lost))
        for side, text, line in lost if COMPLETE.match(path) else ():
            missed[path, side, text] += 1
            where[path, side, text] = line
    if args.list:
        for path in sorted({key[0] for key in missed}):
            print(f"== {path}")
            for (_, side, text), count in missed.items():
                if _ == path:
                    print(*[f"{side}: {text}\n  line {where[path, side, text]}"] * count, sep="\n")
        return 0

    print(f"{'room':12} {'regions':>24} {'lines':>24} {'branches':>24}")
    for name, room in sorted(rooms.items()):
        print(f"{name:12}", *(share(room[ran], room[of]) for ran, of in (
            ("regions_run", "regions"), ("lines_run", "lines"), ("branches_taken", "branches"))), sep="  ")
    named = read_list()
    for path, side, text in (missed - named).elements():
        print(f"{path}:{where[path, side, text]}: {side}: {text}: test it, or name it in {LIST.name} with the reason")
    for path, side, text in (named - missed).elements():
        print(f"{LIST.name}: {path}: {side}: {text}: a test takes this branch now; remove it")
    if args.json:
        commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        report = {"date": str(datetime.date.today()), "commit": commit.stdout.strip(), "rooms": rooms,
                  "listed": sum(named.values())}
        args.json.write_text(json.dumps(report, indent=2) + "\n")
    if numbers := os.environ.get("THIMBLE_NUMBERS"):
        complete = sum(file.sides() for path, file in files.items() if COMPLETE.match(path))
        branches, taken = (sum(room[key] for room in rooms.values()) for key in ("branches", "branches_taken"))
        with open(numbers, "a", encoding="utf-8") as file:
            file.write(f"coverage: branches of the rooms that weights pass through\t{complete}\n"
                       f"coverage: of them listed as never taken\t{sum(named.values())}\n"
                       f"coverage: branches of all other code\t{branches - complete}\n"
                       f"coverage: of them never taken by these tests\t{branches - taken - sum(named.values())}\n")
    return 1 if missed != named else 0


if __name__ == "__main__":
    sys.exit(main())
