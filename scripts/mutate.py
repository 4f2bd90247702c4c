#!/usr/bin/env python3
"""Tries small wrong changes to the code, one at a time, and reports which of them no test notices.

usage: scripts/mutate.py [--check] [--build DIR] [--again] [FILTER...]

The changes are in tests/mutations.txt, which explains its format. --check only verifies that list: every change has its
place in the code, once, and its tests exist. FILTER keeps the changes of files whose path contains it.

The sources are never edited: copies are, in DIR/mutations. A copy holds all changes of its file, each behind the
environment variable THIMBLE_MUTATION, so that one compilation and one link serve many changes. The object files and the
tests come from DIR, build/release by default, which is first built from the commit that is checked out. Results are
appended to DIR/mutations/results.txt as they come; changes that have one are skipped next time, unless --again is
given.
The status is 1 if a change survived that the list does not call equivalent."""
import argparse
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "tests/mutations.txt"
LEAST = 200
# Compiled for one CPU, this one, without fused operations where the code has none.
FASTER = ("-O1", "-w", "-DHWY_COMPILE_ONLY_STATIC", "-march=native", "-ffp-contract=off")
LINKED = ("unit_common", "unit_f32", "unit_cluster", "thimble_program")
CHANGE = re.compile(r"\{\{(.*?) => (.*?)\}\}")


class Change:
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


def guarded(source, numbered):
    """The source with each change behind its number; a change of statements becomes an if, of an expression a ?:."""
    places = []  # [begin, end, changes], those of changes within each other merged
    for number, change in sorted(numbered, key=lambda c: (c[1].span(source)[0], -c[1].span(source)[1])):
        begin, end = change.span(source)
        if not places or begin >= places[-1][1]:
            places.append([begin, end, []])
        elif end > places[-1][1]:
            raise ValueError(f"{LIST.name}:{change.line}: begins within another change and ends outside of it")
        places[-1][2].append((number, begin, end, change))
    for begin, end, changes in reversed(places):
        text = source[begin:end]
        for number, first, last, change in changes:
            new = source[begin:first] + change.new + source[last:end]
            test = f"thimble_mutation == {number}"
            if source[begin:end].endswith((";", "}")):
                text = f"if ({test}) {{ {new} }} else {{ {text} }}"
            else:
                text = f"({test} ? ({new}) : ({text}))"
        source = source[:begin] + text + source[end:]
    return "extern int thimble_mutation;\n" + source


def headers_of(path):
    """The headers of src that a source includes, directly or through others."""
    found = set()
    for name in re.findall(r'^#include "(.*)"', (ROOT / path).read_text(), re.MULTILINE):
        header = f"src/{name}"
        if header.endswith(".h") and (ROOT / header).exists():
            found |= {header} | headers_of(header)
    return found


def sources_with(headers):
    """The sources that include one of these headers."""
    sources = (str(f.relative_to(ROOT)) for f in (ROOT / "src").rglob("*.cpp"))
    return {source for source in sources if headers_of(source) & headers} if headers else set()


class Builder:
    def __init__(self, build):
        self.build, self.work = build, build / "mutations"
        self.work.mkdir(exist_ok=True)
        self.commands = json.loads((build / "compile_commands.json").read_text())

    def run(self, command, **options):
        return subprocess.run(command, cwd=self.build, capture_output=True, text=True, **options)

    def kind(self, path):
        """The target whose compile options a source needs."""
        if "/tasks/" in path:
            return "thimble_train_tasks"
        kind = "f32" if re.search(r"THIMBLE_PRECISION|<Real>\(", (ROOT / path).read_text()) else "common"
        return f"thimble_{path.split('/')[1]}_{kind}"

    def units(self, paths):
        """Sources to compile as one: those of a room, but for kernels and tasks."""
        units = {}
        for path in paths:
            room = path.split("/")[2]
            alone = room == "kernels" or "/tasks/" in path
            units.setdefault((self.kind(path), path if alone else room), []).append(path)
        return units

    def write_headers(self, copies):
        """Puts changed headers, and no others, where compile() looks for headers first."""
        for old in self.work.glob("src/**/*.h"):
            old.unlink()
        for path, text in copies.items():
            (self.work / path).parent.mkdir(parents=True, exist_ok=True)
            (self.work / path).write_text(text)

    def compile(self, unit, copies):
        """The object file of changed sources, compiled as their target compiles them, but faster."""
        kind, name = unit
        source = self.work / kind / (name.replace("/", "_").removesuffix(".cpp") + ".cpp")
        source.parent.mkdir(parents=True, exist_ok=True)
        target = source.with_suffix(".o")
        texts = []
        for path, text in copies.items():
            copy = self.work / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text)
            texts.append(f'#include "{copy}"\n')
        included = sorted(set().union(*map(headers_of, copies)))
        used = [*copies.values(), *((self.work / h).read_text() for h in included if (self.work / h).exists())]
        text = "".join(texts) + "".join(f"// {hashlib.sha256(t.encode()).hexdigest()}\n" for t in used)
        if target.exists() and source.exists() and source.read_text() == text:
            return target
        target.unlink(missing_ok=True)
        source.write_text(text)
        model = next(c["command"] for c in self.commands
                     if f"CMakeFiles/{kind}.dir/" in c["command"] and "cmake_pch" not in c["file"])
        words = shlex.split(model)
        words[1:1] = [f"-I{self.work / 'src'}"]  # changed headers, in place of those of the project
        words = words[:words.index("-o")] + [*FASTER, "-o", str(target), "-c", str(source)]
        done = self.run(words)
        if done.returncode != 0:
            sys.exit(f"{', '.join(copies)}: not compiled with all changes:\n{done.stderr[:3000]}")
        return target

    def link(self, objects):
        """Each program with the changed objects in front of the library's, so that theirs are never used."""
        selector = self.work / "selector.cpp"
        selector.write_text('#include <cstdlib>\n'
                            'int thimble_mutation = std::getenv("THIMBLE_MUTATION") ? '
                            'std::atoi(std::getenv("THIMBLE_MUTATION")) : 0;\n')
        self.run(["g++", "-O1", "-c", str(selector), "-o", str(selector.with_suffix(".o"))], check=True)
        objects = [str(o) for o in objects] + [str(selector.with_suffix(".o"))]
        for program in LINKED:
            commands = self.run(["ninja", "-t", "commands", program], check=True).stdout.splitlines()
            words = shlex.split(next(part for part in commands[-1].split("&&") if " -o " in part))
            words[1:1] = objects
            words[words.index("-o") + 1] = str(self.mutated(program))
            done = self.run(words + ["-Wl,--allow-multiple-definition"])
            if done.returncode != 0:
                sys.exit(f"{program} does not link:\n{done.stderr[:3000]}")

    def mutated(self, program):
        """The program with all changes; it finds configs from where the build has its own."""
        return self.build / f"mutated_{program}"

    def program_of(self, test):
        if test.startswith("addons/cluster/"):
            return "unit_cluster"
        objects = pathlib.Path("tests/CMakeFiles/unit_common.dir")
        alone = any(f"{objects}/{test}.cpp.o" in c["command"] for c in self.commands)
        merged = any(f"/{test}.cpp" in unit.read_text() for unit in (self.build / objects / "Unity").glob("*.cxx"))
        return "unit_common" if alone or merged else "unit_f32"

    def passes(self, number, tests, limit):
        """Whether the tests pass with that change; one that hangs or crashes does not."""
        environment = dict(os.environ, THIMBLE_MUTATION=str(number), OPENBLAS_NUM_THREADS="1")
        commands = {}
        for test in tests:
            if "/" not in test:
                script = ROOT / f"tests/scripts/{test}_test.sh"
                everything = ["all"] if "[all]" in script.read_text() else []
                commands[test] = ["bash", str(script), str(self.mutated("thimble_program")), str(ROOT), *everything]
            else:
                tag = f"[#{pathlib.PurePath(test).name}]"
                program = self.program_of(test)
                binary = str(self.mutated(program))
                command = commands.setdefault(program, [binary, "--filenames-as-tags", "--warn", "NoTests", "--abort", ""])
                command[-1] += ("," if command[-1] else "") + tag
        for command in commands.values():
            with tempfile.TemporaryDirectory() as directory, subprocess.Popen(
                    command, cwd=directory, env=dict(environment, TMPDIR=directory), stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as process:
                try:
                    status = process.wait(timeout=limit)
                except BaseException as error:
                    os.killpg(process.pid, 9)
                    if not isinstance(error, subprocess.TimeoutExpired):
                        raise
                    status = 1
                if status != 0:
                    return False
        return True


def build_commit(build):
    status = subprocess.run(["git", "status", "--porcelain", "src", "include", "tests"], cwd=ROOT, text=True,
                            capture_output=True, check=True).stdout
    status = "".join(line for line in status.splitlines(True) if LIST.name not in line)
    if status:
        sys.exit(f"src, include or tests have changes that are not committed:\n{status}Commit or stash them.")
    subprocess.run(["ninja", *LINKED], cwd=build, stdout=subprocess.DEVNULL, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only verify the list")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="a build of this commit")
    parser.add_argument("--again", action="store_true", help="repeat what has a result")
    parser.add_argument("filters", nargs="*", metavar="FILTER", help="part of a path")
    options = parser.parse_args()
    changes = read_changes()
    if problems := check(changes):
        sys.exit("\n".join(problems))
    if options.check:
        print(f"{len(changes)} changes have their places")
        return 0
    build = options.build.resolve()
    build_commit(build)
    builder = Builder(build)
    log = builder.work / "results.txt"
    results = {}
    if log.exists():
        results = dict(line.split("\t")[::-1] for line in log.read_text().splitlines())
    wanted = [(n, c) for n, c in enumerate(changes, 1)
              if not options.filters or any(f in c.path for f in options.filters)]
    left = [(n, c) for n, c in wanted if options.again or c.key not in results]
    def copy_of(path):
        return guarded((ROOT / path).read_text(), [(n, c) for n, c in enumerate(changes, 1) if c.path == path])

    changed = {c.path for _, c in left}
    headers = {path for path in changed if path.endswith(".h")}
    builder.write_headers({path: copy_of(path) for path in headers})
    objects = []
    for unit, paths in builder.units(sorted(changed - headers | sources_with(headers))).items():
        objects.append(builder.compile(unit, {path: copy_of(path) for path in paths}))
    if objects:
        builder.link(objects)
    sound = {}
    with open(log, "a") as out:
        for number, change in left:
            tests = tuple(change.tests)
            if tests not in sound:
                sound[tests] = builder.passes(0, tests, 600)
            if not sound[tests]:
                results[change.key] = "tests fail without it"
                print(f"{results[change.key]:10}{change.key}", flush=True)
                continue
            survived = builder.passes(number, tests, 300)
            results[change.key] = "survived" if survived else "caught"
            out.write(f"{results[change.key]}\t{change.key}\n")
            out.flush()
            print(f"{results[change.key]:10}{change.key}", flush=True)
    return report(wanted, results)


def report(wanted, results):
    of = {state: [c for _, c in wanted if results[c.key] == state] for state in ("caught", "survived")}
    surprises = [c for c in of["survived"] if not c.equivalent]
    print(f"\n{len(wanted)} changes: {len(of['caught'])} caught, {len(of['survived'])} survived, "
          f"{len(of['survived']) - len(surprises)} of them equivalent")
    if numbers := os.environ.get("THIMBLE_NUMBERS"):
        with open(numbers, "a") as out:
            out.write(f"wrong changes tried: caught\t{len(of['caught'])}\n"
                      f"wrong changes tried: equivalent\t{len(of['survived']) - len(surprises)}\n")
    for change in surprises:
        print(f"survived: {LIST.name}:{change.line}: {change.key}")
    for change in of["caught"]:
        if change.equivalent:
            print(f"caught, though called equivalent: {LIST.name}:{change.line}: {change.key}")
    return 1 if surprises or len(of["caught"]) + len(of["survived"]) < len(wanted) else 0


if __name__ == "__main__":
    sys.exit(main())
