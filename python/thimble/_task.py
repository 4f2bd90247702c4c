"""Data of one's own, from Python lists."""

import hashlib
import json
import os
import pathlib
import tempfile
from typing import Any, Iterable, List, Mapping, Optional, Tuple

from . import _arguments, _program
from ._arguments import Path, Texts


def _line(tokens: Texts, number: int) -> str:
    words = tokens.split() if isinstance(tokens, str) else [str(token) for token in tokens]
    for word in words:
        if not word or any(c in word for c in " \t\r\n"):
            raise ValueError(f"pair {number}: token {word!r}: must have a character, and no space, tab or line break")
    return " ".join(words)


class Task:
    """Pairs of an input and its answer, which become a file that the program reads. pairs: (input, answer), each tokens or
    a text of them with spaces between; file: where to write them, tab-separated, and beside it FILE.yaml, a config; by
    default in runs/, under a name made from their content. A run of them needs the file to be evaluated or inspected."""

    def __init__(self, pairs: Iterable[Tuple[Texts, Texts]], file: Optional[Path] = None):
        lines: List[str] = []
        for number, pair in enumerate(pairs):
            if isinstance(pair, (str, bytes)) or len(pair) != 2:
                raise ValueError(f"pair {number}: {pair!r}: must be an input and its answer")
            source, answer = pair
            lines.append(_line(source, number) + "\t" + _line(answer, number) + "\n")
        self.text = "".join(lines)
        self.count = len(lines)
        digits = hashlib.sha256(self.text.encode()).hexdigest()[:16]
        self.file = pathlib.Path(file) if file is not None else pathlib.Path("runs") / f"pairs-{digits}.tsv"

    def config(self) -> pathlib.Path:
        """Writes the pairs, and beside them their config; returns its path. Raises FileExistsError if others are there."""
        config = self.file.with_name(self.file.name + ".yaml")
        content = json.dumps({"task": {"name": "file", "file": self.file.name, "format": "tsv"}}, ensure_ascii=False) + "\n"
        _write_new(self.file, self.text)
        _write_new(config, content)
        return config

    def __repr__(self) -> str:
        return f"Task of {self.count} pairs in {self.file}"


def settings(sweep: Mapping[str, Any], folder: pathlib.Path) -> pathlib.Path:
    """Writes the content of a sweep file, whose config may be a Task or a bundled one, under a name made from it."""
    config = sweep.get("config")
    if config is None:
        raise ValueError("sweep: needs a config: a file, the name of a bundled one, or a Task")
    if isinstance(config, Task):
        config = config.config()
    elif not os.path.exists(config):
        config = _write_named(_program.call(_arguments.show(config)), folder / "config")
    grid = {"grid": _arguments.flat(sweep["grid"])} if isinstance(sweep.get("grid"), Mapping) else {}
    return _write_named({**sweep, **grid, "config": os.path.abspath(config)}, folder / "settings")


def _write_named(content: Any, path: pathlib.Path) -> pathlib.Path:
    text = _arguments.value(content)
    path = path.with_name(f"{path.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.yaml")
    _write_new(path, text)
    return path


def _write_new(path: pathlib.Path, text: str) -> None:
    """Writes a file that appears whole, unless it is there already; two calls may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.") as part:
        part.write(content)
        part.flush()
        os.chmod(part.name, 0o644)
        try:
            os.link(part.name, path)
        except OSError:  # it is there, or the file system has no links
            if not path.exists():
                path.write_bytes(content)
            elif path.read_bytes() != content:
                raise FileExistsError(f"{path}: has other content, and stays; name another file") from None
