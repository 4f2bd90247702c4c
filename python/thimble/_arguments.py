"""The command lines of the program: the only place that knows the names of its commands and options."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

Head = Union[str, Tuple[int, int]]  # "cross.0.1" or (layer, head), from 0
Path = Union[str, "os.PathLike[str]"]
Overrides = Optional[Mapping[str, Any]]
Checkpoint = Union[str, int, None]  # "best", "final" or a step; None for the newest


def value(x: Any) -> str:
    """A value as the program reads it: texts and paths as they are, None as nothing, anything else as JSON, which is YAML."""
    if x is None:
        return ""
    if isinstance(x, str) or hasattr(x, "__fspath__"):
        return os.fspath(x)
    try:
        return json.dumps(x, ensure_ascii=False, default=lambda number: number.item())  # of NumPy
    except AttributeError:
        raise TypeError(f"{x!r}: must be a text, a path, a number, a boolean, None, or a list or dict of them") from None


def words(overrides: Overrides) -> List[str]:
    return [f"{key}={value(x)}" for key, x in (overrides or {}).items()]


def options(**settings: Any) -> List[str]:
    """stop_after=5 is `--stop-after 5`, resume=True is `--resume`; None and False are left out."""
    out: List[str] = []
    for name, setting in settings.items():
        if setting is None or setting is False:
            continue
        out.append("--" + name.replace("_", "-"))
        if setting is not True:
            out.append(value(setting))
    return out


def version() -> List[str]:
    return ["--version"]


def train(config: Path, overrides: Overrides, out: Optional[Path], resume: bool, stop_after: Optional[int],
          threads: Optional[int]) -> List[str]:
    return ["train", os.fspath(config), *words(overrides),
            *options(out=out, resume=resume, stop_after=stop_after, threads=threads, json="-")]


def _of_run(command: str, run: Path, checkpoint: Checkpoint, overrides: Overrides = None) -> List[str]:
    return [command, os.fspath(run), *words(overrides), *options(checkpoint=checkpoint, json="-")]


def evaluate(run: Path, checkpoint: Checkpoint, overrides: Overrides, splits: Union[str, Iterable[str]],
             sequences: Optional[int]) -> List[str]:
    names = splits if isinstance(splits, str) else ",".join(splits)
    return [*_of_run("eval", run, checkpoint, overrides), *options(split=names or None, sequences=sequences)]


def inspect(run: Path, checkpoint: Checkpoint, overrides: Overrides, **settings: Any) -> List[str]:
    return [*_of_run("inspect", run, checkpoint, overrides), *options(**settings)]


def trace(run: Path, checkpoint: Checkpoint, text: str) -> List[str]:
    return [*_of_run("trace", run, checkpoint), "--", text]


def ablate(run: Path, checkpoint: Checkpoint, heads: Union[str, Sequence[Head]],
           sequences: Optional[int]) -> List[str]:
    chosen = [heads] if isinstance(heads, str) else heads
    names = ",".join(head if isinstance(head, str) else f"{head[0]}.{head[1]}" for head in chosen)
    return [*_of_run("ablate", run, checkpoint), *options(sequences=sequences), "--", names]


def patch(run: Path, checkpoint: Checkpoint, clean: Optional[int], corrupted: Optional[int],
          pairs: Optional[int]) -> List[str]:
    if (clean is None) != (corrupted is None):
        raise ValueError("patch: clean and corrupted are given together, or neither")
    return [*_of_run("patch", run, checkpoint), *options(pairs=pairs, clean=clean, corrupted=corrupted)]


def generate(run: Path, checkpoint: Checkpoint, text: str, beams: Optional[int] = None, samples: Optional[int] = None,
             temperature: Optional[float] = None, top_k: Optional[int] = None, top_p: Optional[float] = None,
             seed: Optional[int] = None, tokens: Optional[int] = None) -> List[str]:
    return [*_of_run("generate", run, checkpoint),
            *options(input=text, beams=beams, samples=samples, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed,
                     tokens=tokens)]


def serve(run: Optional[Path], checkpoint: Checkpoint, overrides: Overrides, threads: Optional[int],
          weights: Optional[Path] = None, config: Optional[Path] = None) -> List[str]:
    return ["serve", *([] if run is None else [os.fspath(run)]), *words(overrides),
            *options(checkpoint=checkpoint, threads=threads, weights=weights, config=config)]


def sweep(file: Path, overrides: Overrides, out: Optional[Path], jobs: Optional[int]) -> List[str]:
    return ["sweep", os.fspath(file), *words(overrides), *options(out=out, jobs=jobs, json="-")]


def compare(runs: Iterable[Path], sequences: Optional[int]) -> List[str]:
    return ["compare", *[value(run) for run in runs], *options(sequences=sequences, json="-")]


def gradcheck(config: Optional[Path], overrides: Overrides, op: Optional[str]) -> List[str]:
    return ["gradcheck", *([] if config is None else [os.fspath(config)]), *words(overrides), *options(op=op, json="-")]


def tasks(name: Optional[str]) -> List[str]:
    return ["tasks", *([] if name is None else [name]), *options(json="-")]
