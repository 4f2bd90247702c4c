"""Finds the program and runs it: results are its JSON, errors its messages."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from typing import Any, Dict, List, Sequence

from . import _arguments

__version__ = "0.3.0"


class ThimbleError(RuntimeError):
    """The program did not do what it was told; the text is its message.

    status: its exit status, negative for the number of a signal; problems: a line for each problem of a config or a
    file, with its place; command: the command line.
    """

    def __init__(self, message: str, status: int, command: Sequence[str]):
        super().__init__(message)
        self.status = status
        self.command = list(command)
        lines = message.split("\n")
        self.problems = lines[1:] if len(lines) > 1 and re.search(r": \d+ problems?$", lines[0]) else [message]


class InputError(ThimbleError, ValueError):
    """A command, config or file is bad: nothing was written."""


class NonFiniteError(ThimbleError, ArithmeticError):
    """Training met a number that is infinite or not a number; the run holds what came before."""


_versions: Dict[tuple, str] = {}  # of programs, by path and time of change


def program() -> str:
    """The path of the program: $THIMBLE, or that installed with this package, on the path, or built in this checkout.

    Raises RuntimeError if there is none, or if it has another version than this package.
    """
    package = pathlib.Path(__file__).resolve().parent
    candidates = [os.environ.get("THIMBLE"), os.path.join(sysconfig.get_path("scripts"), "thimble"),
                  shutil.which("thimble"), package.parent.parent / "build" / "release" / "thimble"]
    path = next((str(c) for c in candidates if c and os.access(c, os.X_OK)), None)
    if path is None:
        raise RuntimeError("there is no program thimble on the path; add its folder to PATH, or set the variable "
                           "THIMBLE to the program")
    key = (path, os.stat(path).st_mtime_ns)
    if key not in _versions:
        said = subprocess.run([path, *_arguments.version()], capture_output=True, text=True, check=False).stdout
        _versions[key] = (said.split() or ["unknown"])[-1]
    if _versions[key] != __version__:
        raise RuntimeError(f"{path} has version {_versions[key]}, this package {__version__}; install the same version "
                           "of both, or set the variable THIMBLE to the program of that version")
    return path


def _show(line: str, shown: int) -> int:
    """Shows a line of progress on standard error, a step over the step before; returns the width of what may be
    written over."""
    step = re.match(r"step \d+/\d+ ", line)
    if not step and shown:
        sys.stderr.write("\n")
    sys.stderr.write("\r" + line.ljust(shown) if step else line + "\n")
    sys.stderr.flush()
    return len(line) if step else 0


def _wait(process: "subprocess.Popen[str]", progress: bool) -> List[str]:
    """Waits for the end, and returns what the program said."""
    lines: List[str] = []
    held: List[str] = []  # what may be an error, which the exception alone tells, or a remark
    shown = 0  # the width of a line of progress
    for line in process.stderr or ():
        lines.append(line.rstrip("\n"))
        if held and not re.match(r"step +\d|\d+/\d+ ", line) or line.startswith("thimble: "):
            held.append(lines[-1])
            continue
        for text in [*held, lines[-1]] if progress else ():
            shown = _show(text, shown)
        held = []
    for text in held if process.wait() in (0, 1) and progress else ():
        shown = _show(text, shown)
    if shown:
        sys.stderr.write("\n")
    return lines


def call(arguments: Sequence[str], progress: bool = False) -> Any:
    """Runs the program and returns its result. With `progress` its lines appear on standard error.

    Raises InputError, NonFiniteError or ThimbleError with the program's message. At a KeyboardInterrupt the program
    saves what it trains, and ends before the exception goes on. May be called by several threads at once.
    """
    command = [program(), *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="replace") as process:
        out: List[str] = []
        reader = threading.Thread(target=lambda: out.append(process.stdout.read()))  # type: ignore[union-attr]
        reader.start()
        try:
            lines = _wait(process, progress)
        except KeyboardInterrupt:
            process.terminate()  # saves, as Ctrl-C does, which the program may have had already
            for line in _wait(process, False):
                print(line, file=sys.stderr)
            raise
        finally:
            reader.join()
    if process.returncode in (0, 1) and out[0].strip():
        return json.loads(out[0])
    starts = [i for i, line in enumerate(lines) if line.startswith("thimble: ")]
    message = "\n".join(lines[starts[-1]:] if starts else lines)
    message = message[len("thimble: "):] if starts else message
    kinds = {2: InputError, 3: NonFiniteError}
    if process.returncode < 0:
        message = message or f"the program was ended by signal {-process.returncode}"
    raise kinds.get(process.returncode, ThimbleError)(message, process.returncode, command)
