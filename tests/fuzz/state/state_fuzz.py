#!/usr/bin/env python3
"""Damages run directories and looks whether thimble refuses them or does what it must.

usage: state_fuzz.py THIMBLE FAULTS_LIBRARY [--count N] [--seed S...] [--workers N] [--only NAME] [--keep] [--json FILE]
                     [--sabotage PROGRAM]

A random small config is trained, stopped and killed. Then, case by case, a byte, a digit, a file, a link or a permission of
the run changes, an output is an input, or two or three calls of the system fail, or only what docs/runs.md allows
happens, and the run is resumed, evaluated, inspected, compared or generates. What contradicts the run must be refused
(exit status 2, a message that names the file, nothing changed on the disk); what does not, must be accepted, and do what
it does on the undamaged run: the same bits, the same numbers (expect.py says which). Whatever else happens is a finding,
and the exit status is 1. COUNT is the number of executions of the program; the seeds share them. A case has a name,
WORLD.NUMBER, and --only repeats it; with --keep its folder stays. As root, every second world is an ordinary user's. A
PROGRAM of sabotage/ runs in place of THIMBLE, which it calls, and does one thing wrong: the first finding of what it
names ends the run, and none is the failure."""
import argparse
import collections
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback

import cases
import sweeps
from commands import Finding
from program import Program, remove
from world import Unusable, World

NOBODY = 65534
MEMORY = 4 << 30


class Worker:
    def __init__(self, options, root, user):
        self.options, self.root, self.user = options, root, user
        self.program = Program(os.path.join(options.root, "thimble"), os.path.join(options.root, "faults.so"),
                               options.timeout)
        self.kinds, self.findings, self.seen = collections.Counter(), {}, 0
        self.worlds = self.cases = self.unusable = 0

    def report(self, found):
        for finding in found:
            if self.options.expected and not re.search(self.options.expected, finding.what):
                continue
            key = finding.key()
            self.seen += 1
            if key not in self.findings:
                self.findings[key] = dict(vars(finding), count=0, user=self.user)
                print(f"state_fuzz: {finding.name} ({finding.state}): {finding.damage}: {finding.command}: "
                      f"{'; '.join(finding.problems)} [{finding.said}]", file=sys.stderr, flush=True)
            self.findings[key]["count"] += 1

    def world(self, number):
        name = f"{self.options.seed[number // 2 % len(self.options.seed)]}-{number}"
        family, kind = (sweeps, sweeps.SweepWorld) if number % 16 in (6, 13) else (cases, World)
        try:
            world = kind(name, self.program, self.root)
        except Unusable:
            self.unusable += 1
            return
        self.worlds += 1
        self.report([Finding(name, "world", [what], "", detail, "") for what, detail in world.problems])
        found = []
        for state in world.states:
            family.control(name, world, state, found)
        self.report(found)
        if self.done():
            return
        wanted = self.wanted()
        for index in range(family.CASES) if wanted is None else [wanted]:
            found = []
            self.kinds[family.run_case(f"{name}.{index}", world, found)] += 1
            self.cases += 1
            self.report(found)
            if self.done():
                break

    def wanted(self):
        """Returns the number of the only case to run, or None."""
        return int(self.options.only.split(".")[1]) if self.options.only else None

    def done(self):
        return (self.program.executions >= self.options.share or self.options.sabotage and self.seen) and \
            not self.options.only

    def run(self, numbers):
        if self.user == "nobody":
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        for number in numbers:
            self.world(number)
            if self.done() or self.options.only:
                break
        return {"user": self.user, "executions": self.program.executions, "worlds": self.worlds, "cases": self.cases,
                "unusable": self.unusable, "kinds": self.kinds, "outcomes": self.program.outcomes, "verdicts": self.program.verdicts, "seen": self.seen,
                "findings": self.findings}


def users():
    return ["root", "nobody"] if os.getuid() == 0 else ["user"]


def fork(options, index):
    """Starts a worker; returns its process and the file of its results."""
    root = os.path.join(options.root, f"w{index}")
    os.mkdir(root)
    user = users()[index % len(users())]
    if user == "nobody":
        os.chown(root, NOBODY, NOBODY)
    results = os.path.join(root, "results")
    process = os.fork()
    if process == 0:
        status = 1
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # so that what it runs ends before it
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            numbers = [int(options.only.split(".")[0].split("-")[1])] if options.only else \
                range(index, 10**9, options.shares)
            done = Worker(options, root, user).run(numbers)
            with open(results, "w", encoding="utf-8") as file:
                json.dump(done, file)
            status = 0
        except Exception:  # the child must not return into the code of its parent
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return process, results


def run_all(options):
    """Runs all shares, as many at a time as there are workers; returns their results."""
    if options.only:
        shares = [int(options.only.split(".")[0].split("-")[1]) % options.shares]
    else:
        shares = list(range(options.shares))
    running, done, failed = {}, [], False

    def end(*_):
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        sys.exit("state_fuzz: interrupted")

    signal.signal(signal.SIGTERM, end)
    while shares or running:
        while shares and len(running) < options.workers:
            process, results = fork(options, shares.pop(0))
            running[process] = results
        process, status = os.wait()
        results = running.pop(process)
        if status != 0:
            failed = True
            print(f"state_fuzz: a worker ended with {os.waitstatus_to_exitcode(status)}", file=sys.stderr)
            continue
        with open(results, encoding="utf-8") as file:
            done.append(json.load(file))
        if options.sabotage and done[-1]["seen"]:
            for process in running:
                os.kill(process, signal.SIGTERM)
                os.waitpid(process, 0)
            break
    return done, failed


def summary(options, done, seconds):
    findings = {}
    for part in done:
        for key, finding in part["findings"].items():
            if key in findings:
                findings[key]["count"] += finding["count"]
            else:
                findings[key] = finding
    def total(name):
        return dict(sorted(sum((collections.Counter(part[name]) for part in done), collections.Counter()).items()))
    return {"seeds": options.seed, "executions": sum(part["executions"] for part in done),
            "worlds": sum(part["worlds"] for part in done), "cases": sum(part["cases"] for part in done),
            "seconds": round(seconds, 1), "users": sorted({part["user"] for part in done}),
            "cases_by_kind": total("kinds"), "verdicts": total("verdicts"), "outcomes": total("outcomes"),
            "findings": sum(part["seen"] for part in done),
            "kinds_of_findings": len(findings), "examples": list(findings.values())}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    parser.add_argument("thimble")
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=10)
    parser.add_argument("--only")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--sabotage")
    options = parser.parse_args()
    if options.only:
        options.seed = [int(options.only.split("-")[0])]
    options.shares = 2
    options.share = options.count / options.shares
    options.root = tempfile.mkdtemp(prefix="state_fuzz.")
    os.chmod(options.root, 0o755)
    options.expected = None
    if options.sabotage:
        with open(options.sabotage, encoding="utf-8") as file:
            options.expected = re.search("^# finding: (.*)$", file.read(), re.M)[1]
        shutil.copy(options.sabotage, os.path.join(options.root, "thimble"))
    shutil.copy(options.thimble, os.path.join(options.root, "thimble.real" if options.sabotage else "thimble"))
    shutil.copy(options.library, os.path.join(options.root, "faults.so"))
    start = time.monotonic()
    try:
        done, failed = run_all(options)
    finally:
        if options.keep:
            print(f"state_fuzz: kept {options.root}")
        else:
            remove(options.root)
    result = summary(options, done, time.monotonic() - start)
    if numbers := os.environ.get("THIMBLE_NUMBERS"):
        with open(numbers, "a", encoding="utf-8") as file:
            file.write(f"damaged runs: executions of the program\t{result['executions']}\n"
                       f"damaged runs: cases\t{result['cases']}\n"
                       f"damaged runs: commands that had to be accepted\t{result['verdicts'].get('accept', 0)}\n"
                       f"damaged runs: commands that had to be refused\t{result['verdicts'].get('refuse', 0)}\n"
                       f"damaged runs: commands that could be either\t{result['verdicts'].get('either', 0)}\n"
                       f"damaged runs: findings\t{result['findings']}\n")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    print(f"state_fuzz: {result['executions']} executions, {result['worlds']} worlds, {result['cases']} cases as "
          f"{' and '.join(result['users'])} in {result['seconds']:.0f} s: {result['findings']} findings of "
          f"{result['kinds_of_findings']} kinds")
    for example in sorted(result["examples"], key=lambda example: -example["count"]):
        print(f"  {example['count']} x {example['name']}: {example['damage']}: {example['command']}: {example['what']}")
    return 1 if failed or bool(result["findings"]) != bool(options.sabotage) else 0


if __name__ == "__main__":
    sys.exit(main())
