"""The process `thimble serve`, which answers for a model's arrays; messages are those of docs/serve.md."""

import contextlib
import fcntl
import importlib
import json
import os
import subprocess
import tempfile
import threading
import weakref
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _program

Reply = Tuple[Dict[str, Any], Dict[str, Any]]  # and its arrays
np: Any = None
_TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "BOOL": "|b1"}
_NAMES = {code: name for name, code in _TYPES.items()}
_SET_SIZE = 1031  # F_SETPIPE_SZ of Linux


def needed(module: str, what: str) -> Any:
    """A module that is imported when it is needed, as the package does without."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        raise ImportError(f"{what} need {name}; install it: pip install {'pyyaml' if name == 'yaml' else name}") from error


def _bytes(array: Any) -> memoryview:
    return array.reshape(-1).view("u1").data


class _Process:
    """A process that serves, and what it says in a file, since nobody reads a pipe while it works."""

    def __init__(self, arguments: Sequence[str]):
        self.command = [_program.program(), *arguments]
        self.said = tempfile.TemporaryFile()
        # In a session of its own, as Ctrl-C at a prompt does not concern it; it ends with its input.
        self.process = subprocess.Popen(self.command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.said, start_new_session=True)
        self.streams = [stream for stream in (self.process.stdin, self.process.stdout) if stream is not None]
        self.requests, self.replies = [stream.fileno() for stream in self.streams]
        self.sent: Tuple[Any, bytes] = (None, b"")  # the last header and what it was made of: calls are often alike
        self.seen: Tuple[bytes, Dict[str, Any], List[Any]] = (b"", {}, [])  # and that of a reply, in parts
        for stream in (self.requests, self.replies):
            with contextlib.suppress(OSError):
                fcntl.fcntl(stream, _SET_SIZE, 1 << 20)  # large arrays are twice as fast

    def ask(self, request: Any, arrays: Mapping[str, Any]) -> Reply:
        """See Server.ask. Raises EOFError or BrokenPipeError when the process ends."""
        self.send(request, arrays)
        out: Dict[str, Any] = {}
        while True:
            text = self._take(int.from_bytes(self._take(8), "little"))
            _, reply, entries = self.seen if text == self.seen[0] else self._parse(text)
            first, last = reply.get("rows", (0, 0))
            parts = len(entries) - reply["whole"] if "rows" in reply else 0  # arrays of these rows; others are of all
            for i, (name, code, shape) in enumerate(entries):
                if name not in out:
                    out[name] = np.empty((reply["sequences"], *shape[1:]) if i < parts else shape, code)
                self._fill(_bytes(out[name][first:last] if i < parts else out[name]))
            if reply.get("last", True):
                return reply, out

    def _parse(self, text: bytes) -> Tuple[bytes, Dict[str, Any], List[Any]]:
        header = json.loads(text.decode())
        reply = json.loads(header.pop("__metadata__")["thimble"])
        entries = sorted(header.items(), key=lambda one: one[1]["data_offsets"])
        parsed = text, reply, [(name, _TYPES[entry["dtype"]], entry["shape"]) for name, entry in entries]
        if "rows" in reply:
            self.seen = parsed
        return parsed

    def send(self, request: Any, arrays: Mapping[str, Any]) -> None:
        key = json.dumps(request), [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
        if key != self.sent[0]:
            entries, end = [f'"__metadata__":{{"thimble":{json.dumps(key[0])}}}'], 0
            for name, array in arrays.items():
                begin, end = end, end + array.nbytes
                entries.append(f'{json.dumps(name)}:{{"dtype":"{_NAMES[array.dtype.str]}","shape":{list(array.shape)},'
                               f'"data_offsets":[{begin},{end}]}}')
            text = f"{{{','.join(entries)}}}".encode()
            self.sent = key, len(text).to_bytes(8, "little") + text
        parts: List[Any] = [self.sent[1], *map(_bytes, arrays.values())]
        for part in [b"".join(parts)] if sum(map(len, parts)) < 1 << 16 else parts:  # bytes that a pipe takes at once
            view = memoryview(part)
            while len(view):
                view = view[os.write(self.requests, view):]

    def _take(self, count: int) -> bytes:
        taken = bytearray(count)
        self._fill(memoryview(taken))
        return bytes(taken)

    def _fill(self, view: memoryview) -> None:
        while len(view):
            count = os.readv(self.replies, [view])
            if not count:
                raise EOFError
            view = view[count:]

    def lines(self) -> List[str]:
        file = self.said.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode("utf-8", "replace").splitlines()

    def end(self, patience: float = 0) -> Tuple[int, List[str]]:
        """Waits so many seconds for its end, then kills it; returns its status and what it said."""
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)
        finally:
            self.process.kill()
            status, lines = self.process.wait(), self.lines()
            self.close()
        return status, lines

    def close(self) -> None:
        for stream in (*self.streams, self.said):
            stream.close()


class Server:
    """Asks a process, which starts with the first question. When it has died, the next question starts another. May be asked
    by several threads; a process that was forked starts another for itself."""

    _process: Optional[_Process] = None

    def __init__(self, arguments: Sequence[str]):
        global np
        np = needed("numpy", "arrays")
        self.arguments = list(arguments)
        self.lock = threading.RLock()
        self._description: Dict[str, Any] = {}
        _servers.add(self)

    def ask(self, request: Any, arrays: Mapping[str, Any] = {}) -> Reply:
        """The reply and its arrays. Raises InputError for a request that is refused, ThimbleError if the process dies. Any
        other exception, such as KeyboardInterrupt, ends the process."""
        with self.lock:
            return self._exchange(self._process or self._open(), request, arrays)

    @property
    def description(self) -> Dict[str, Any]:
        with self.lock:
            if not self._description:
                self._open()
            return self._description

    def _open(self) -> _Process:
        process = _Process(self.arguments)
        self._description = self._exchange(process, {"do": "describe"}, {})[0]
        path = self._description["weights"]
        self._description["written"] = path and os.stat(path).st_mtime_ns
        self._process = process
        _program.warn(process.lines())
        return process

    def _exchange(self, process: _Process, request: Any, arrays: Mapping[str, Any]) -> Reply:
        try:
            reply, out = process.ask(request, arrays)
        except (BrokenPipeError, EOFError):
            self._process = None
            raise _program.failure(*process.end(patience=2), process.command) from None
        except BaseException:  # the place in the stream of replies is lost
            self._process = None
            process.end()
            raise
        if not reply["ok"]:
            if reply["error"]["type"] == "FileError":  # it ends now
                self._process = None
                process.end(patience=2)
            raise _program.InputError(reply["error"]["message"], 2, process.command)
        return reply, out

    def close(self) -> None:
        with self.lock:
            process, self._process = self._process, None
            if process is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.send({"do": "close"}, {})  # since a fork may hold its input open
                process.end(patience=2)

    def forked(self) -> None:
        """Leaves the process to the parent of this one."""
        process, self._process, self.lock = self._process, None, threading.RLock()
        if process is not None:
            process.process.returncode = 0  # so that nobody waits for it
            process.close()

    def __del__(self) -> None:
        if self._process is not None:
            with contextlib.suppress(Exception):
                self.close()


_servers: "weakref.WeakSet[Server]" = weakref.WeakSet()
os.register_at_fork(after_in_child=lambda: list(map(Server.forked, list(_servers))))
