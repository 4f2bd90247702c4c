"""Builds the programs of the tests with many changes at once, for mutate.py, and runs tests with one of them."""
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
LINKED = ("unit_common", "unit_f32", "unit_cluster", "thimble_program")
# Compiled for one CPU, this one, without fused operations where the code has none.
FASTER = ("-O1", "-w", "-DHWY_COMPILE_ONLY_STATIC", "-march=native", "-ffp-contract=off")


def guarded(source, numbered):
    """The source with each change behind its number; a change of statements becomes an if, of an expression a ?:. Errors
    of the compiler in a change name it in place of the file."""
    places = []  # [begin, end, changes], those of changes within each other merged
    for number, change in sorted(numbered, key=lambda c: (c[1].span(source)[0], -c[1].span(source)[1])):
        begin, end = change.span(source)
        if not places or begin >= places[-1][1]:
            places.append([begin, end, []])
        elif end > places[-1][1]:
            raise ValueError(f"{change.key}: begins within another change and ends outside of it")
        places[-1][2].append((number, begin, end, change))
    for begin, end, changes in reversed(places):
        text = source[begin:end]
        for number, first, last, change in changes:
            new = source[begin:first] + change.new + source[last:end]
            here, back = f'\n#line 1 "change {number}"\n', f'\n#line {line_at(source, begin)} "{change.path}"\n'
            test = f"thimble_mutation == {number}"
            if source[begin:end].endswith((";", "}")):
                text = f"if ({test}) {{ {here}{new}{back} }} else {{ {text} }}"
            elif change.is_condition and (begin, end) == (first, last):
                text = f"({test} ? bool({here}{new}{back}) : bool({text}))"
            else:
                text = f"({test} ? ({here}{new}{back}) : ({text}))"
        source = source[:begin] + text + source[end:]
    return f'extern int thimble_mutation;\n#line 1 "{numbered[0][1].path}"\n{source}' if numbered else source


def line_at(source, place):
    return source.count("\n", 0, place) + 1


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
    def __init__(self, build, changes):
        self.build, self.work = build, build / "mutations"
        self.changes, self.refused = list(enumerate(changes, 1)), set()
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

    def copy_of(self, path):
        left = [(n, c) for n, c in self.changes if c.path == path and n not in self.refused]
        return guarded((ROOT / path).read_text(), left)

    def build_all(self, changed, programs):
        """Programs with the changes of these files, without the changes that do not compile."""
        headers = {path for path in changed if path.endswith(".h")}
        objects = []
        for unit, paths in self.units(sorted(changed - headers | sources_with(headers))).items():
            while not (target := self.compile(unit, headers, paths)):
                pass
            objects.append(target)
        self.link(objects, programs)

    def write_headers(self, paths):
        """Puts changed headers, and no others, where compile() looks for headers first."""
        for old in self.work.glob("src/**/*.h"):
            old.unlink()
        for path in paths:
            (self.work / path).parent.mkdir(parents=True, exist_ok=True)
            (self.work / path).write_text(self.copy_of(path))

    def compile(self, unit, headers, paths):
        """The object file of changed sources, compiled as their target compiles them, but faster; None if changes do not
        compile, which are left out from then on."""
        kind, name = unit
        self.write_headers(headers)
        copies = {path: self.copy_of(path) for path in paths}
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
            if not (refused := self.refused_by(done.stderr)):
                sys.exit(f"{', '.join(copies)}: not compiled with all changes:\n{done.stderr[:3000]}")
            self.refused |= refused
            return None
        return target

    def refused_by(self, errors):
        """The changes that errors of the compiler name, or those on the lines that they name, or that called what is wrong."""
        wrong, called = (re.findall(rf"^([^:\n]+):(\d+):\d+: +(?:fatal )?{word}", errors, re.MULTILINE)
                         for word in ("error", "required"))

        def is_on(change, places):
            source = (ROOT / change.path).read_text()
            first, last = (line_at(source, place) for place in change.span(source))
            return any(name == change.path and first <= int(line) <= last for name, line in places)

        left = [(number, change) for number, change in self.changes if number not in self.refused]
        for found in ({n for n, _ in left if any(name == f"change {n}" for name, _ in wrong)},
                      {n for n, change in left if is_on(change, wrong)},
                      {n for n, _ in left if any(name == f"change {n}" for name, _ in called)}):
            if found:
                return found
        return set()

    def link(self, objects, programs):
        """Each program with the changed objects in front of the library's, so that theirs are never used."""
        selector = self.work / "selector.cpp"
        selector.write_text('#include <cstdlib>\n'
                            'int thimble_mutation = std::getenv("THIMBLE_MUTATION") ? '
                            'std::atoi(std::getenv("THIMBLE_MUTATION")) : 0;\n')
        self.run(["g++", "-O1", "-c", str(selector), "-o", str(selector.with_suffix(".o"))], check=True)
        objects = [str(o) for o in objects] + [str(selector.with_suffix(".o"))]
        for program in programs:
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

    def commands_of(self, tests):
        """The commands of tests, each with the program that it runs."""
        scripts, units = [], {}
        for test in tests:
            if "/" not in test:
                script = ROOT / f"tests/scripts/{test}_test.sh"
                everything = ["all"] if "[all]" in script.read_text() else []
                program = str(self.mutated("thimble_program"))
                scripts.append(("thimble_program", ["bash", str(script), program, str(ROOT), *everything]))
            else:
                units.setdefault(self.program_of(test), []).append(f"[#{pathlib.PurePath(test).name}]")
        options = ["--filenames-as-tags", "--warn", "NoTests", "--abort"]
        return [(p, [str(self.mutated(p)), *options, ",".join(tags)]) for p, tags in units.items()] + scripts

    def passes(self, number, tests, limit):
        """Whether the tests pass with that change; one that hangs or crashes does not."""
        environment = dict(os.environ, THIMBLE_MUTATION=str(number), OPENBLAS_NUM_THREADS="1")
        for _, command in self.commands_of(tests):
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
