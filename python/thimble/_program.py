"""Finds the program and runs it: results are its JSON, errors its messages."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
import warnings
from typing import Any, Dict, List, Sequence, Tuple

from . import _arguments

__version__ = "0.3.0"


class ThimbleError(RuntimeError):
    """The program did not do what it was told; the text is its message. status: its exit status, negative for the number of
    a signal; problems: a line for each problem of a config or a file, with its place; command: the command line."""

    def __init__(self, message: str, status: int, command: Sequence[str]):
        message = _arguments.in_python(message, command)
        super().__init__(message)
        self.status = status
        self.command = list(command)
        lines = message.split("\n")
        self.problems = lines[1:] if len(lines) > 1 and re.search(r": \d+ problems?$", lines[0]) else [message]

    def __reduce__(self) -> Any:  # so that processes of a pool can send it
        return type(self), (str(self), self.status, self.command)


class InputError(ThimbleError, ValueError):
    """A command, config or file is bad: no run was written."""


class NonFiniteError(ThimbleError, ArithmeticError):
    """Training met a number that is infinite or not a number; the run holds what came before."""


_versions: Dict[Tuple[str, int], str] = {}  # of programs, by path and time of change


def program() -> str:
    """The path of the program: $THIMBLE, or that installed with this package, on the path, or built in this checkout. Raises
    RuntimeError if there is none, or if it has another version than this package."""
    checkout = pathlib.Path(__file__).resolve().parent.parent.parent
    named = os.environ.get("THIMBLE")
    candidates = [named] if named else [os.path.join(sysconfig.get_path("scripts"), "thimble"), "thimble",
                                        str(checkout / "build" / "release" / "thimble")]
    path = next((os.path.abspath(found) for found in [shutil.which(name) for name in candidates] if found), None)
    if path is None:
        raise RuntimeError(f"there is no program {named}, which the variable THIMBLE names; correct or unset it" if named else
                           "there is no program thimble on the path; add its folder to PATH, or set the variable THIMBLE to it")
    key = (path, os.stat(path).st_mtime_ns)
    if key not in _versions:
        said = subprocess.run([path, *_arguments.VERSION], capture_output=True, text=True, check=False).stdout
        _versions[key] = (said.split() or ["unknown"])[-1]
    if _versions[key] != __version__:
        raise RuntimeError(f"{path} has version {_versions[key]}, this package {__version__}; install the same version "
                           "of both, or set the variable THIMBLE to the program of that version")
    return path


_MOVES = re.compile(r"step (\d+)/(\d+) |[^:]+: \d+ %, .* left$")  # a line of progress that replaces the one before
_SECONDS = 5  # between such lines, where none can be replaced


class _Progress:
    """Shows "all" lines, "progress" or "nothing", on standard error, or in a notebook on standard output, as errors are red
    there. There and in a terminal progress is one line that moves, which remains of training alone, else one now and then."""

    def __init__(self, shows: str):
        in_notebook = type(sys.stdout).__module__.startswith("ipykernel")
        self.stream = sys.stdout if in_notebook else sys.stderr
        self.shows = "nothing" if self.stream is None else shows
        self.moves = in_notebook or (self.shows != "nothing" and self.stream.isatty())
        self.line = ""  # the one that may be written over
        self.time = time.monotonic()  # of the last line

    def show(self, line: str) -> None:
        step = _MOVES.match(line)
        if self.shows == "nothing" or not (step or self.shows == "all"):
            return
        if step and self.moves:
            self.stream.write("\r" + line.ljust(len(self.line)))
            self.line = line
        elif not step or time.monotonic() >= self.time + _SECONDS or (step[1] and step[1] == step[2]):
            self.stream.write(("\r" + line.ljust(len(self.line)) if self.line else line) + "\n")
            self.line = ""
            self.time = time.monotonic()
        self.stream.flush()

    def end(self) -> None:
        if self.line:
            self.stream.write("\n" if self.line.startswith("step ") else "\r" + " " * len(self.line) + "\r")
        self.line = ""


def _error(lines: Sequence[str]) -> int:
    """Where the last message begins, which is the error of a program that failed; what is before it are remarks."""
    return max((i for i, line in enumerate(lines) if line.startswith("thimble: ")), default=0)


def _wait(process: "subprocess.Popen[str]", shows: str) -> List[str]:
    """Waits for the end, and returns what the program said."""
    lines: List[str] = []
    held: List[str] = []  # what may be an error, which the exception alone tells, or a remark
    progress = _Progress(shows)
    try:
        for line in process.stderr or ():
            lines.append(_arguments.in_python(line.rstrip("\n"), process.args))
            held.append(lines[-1])
            if held[0].startswith("thimble: ") and not (re.match(r"step +\d|\d+/\d+ ", line) or _MOVES.match(line)):
                continue
            for text in held:
                progress.show(text)
            held = []
        failed = process.wait() not in (0, 1)
        for text in held[:_error(held)] if failed else held:
            progress.show(text)
    finally:
        progress.end()
    return lines


def call(arguments: Sequence[str], progress: bool = False) -> Any:
    """Runs the program, shows its progress and returns its result. With `progress` its other lines appear as they come, else
    remarks are warnings. Raises InputError, NonFiniteError or ThimbleError with the program's message. At any other
    exception, such as KeyboardInterrupt, the program saves what it trains and ends. Several threads may call at once."""
    command = [program(), *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="replace") as process:
        out: List[str] = []
        reader = threading.Thread(target=lambda: out.append(process.stdout.read()))  # type: ignore[union-attr]
        reader.start()
        try:
            lines = _wait(process, "all" if progress else "progress")
        except BaseException as error:
            process.terminate()  # saves, as Ctrl-C does, which the program may have had already
            said = _wait(process, "nothing")
            if isinstance(error, KeyboardInterrupt) and sys.stderr is not None:
                sys.stderr.write("".join(line + "\n" for line in said))
            raise
        finally:
            reader.join()
    succeeded = process.returncode in (0, 1) and out[0].strip()
    if not progress:
        warn(lines if succeeded else lines[:_error(lines)])
    if succeeded:
        return json.loads(out[0])
    raise failure(process.returncode, lines, command)


def warn(lines: Sequence[str]) -> None:
    """Warns of each remark of the program, at the place that called the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    said = "\n".join(line for line in lines if not _MOVES.match(line))
    for remark in filter(None, re.split(r"^thimble: ", said, flags=re.M)):
        warnings.warn(remark.strip(), stacklevel=level)


def failure(status: int, lines: Sequence[str], command: Sequence[str]) -> ThimbleError:
    """The error of a program that said this and ended."""
    message = "\n".join(lines[_error(lines):]).removeprefix("thimble: ")
    ended = f"was ended by signal {-status}" if status < 0 else f"ended with status {status} and printed no result"
    kinds = {2: InputError, 3: NonFiniteError}
    return kinds.get(status, ThimbleError)(message or f"the program {ended}", status, command)
