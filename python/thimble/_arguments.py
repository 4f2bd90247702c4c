"""The command lines of the program: the only place that knows the names of its commands and options."""

import json
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

Head = Union[str, Tuple[int, int]]  # "cross.0.1" or (layer, head), from 0
Path = Union[str, "os.PathLike[str]"]
Texts = Union[str, Sequence[str]]
Overrides = Optional[Mapping[str, Any]]
Checkpoint = Union[str, int, None]  # "best", "final" or a step; None for the newest
VERSION = ["--version"]


def value(x: Any) -> str:
    """A value as the program reads it: texts and paths as they are, None as nothing, anything else as JSON, which is YAML."""
    if x is None or isinstance(x, (str, os.PathLike)):
        return os.fspath(x or "")
    try:  # what NumPy has is a list or number there, and so is a range
        return json.dumps(x, ensure_ascii=False, default=lambda x: x.tolist() if hasattr(x, "tolist") else list(x))
    except TypeError:
        raise TypeError(f"{x!r}: must be a text, a path, a number, a boolean, None, or a list or dict of them") from None


def flat(overrides: Overrides, section: str = "") -> Dict[str, Any]:
    """{"model": {"heads": 2}} as {"model.heads": 2}."""
    out: Dict[str, Any] = {}
    for key, x in (overrides or {}).items():
        out.update(flat(x, f"{section}{key}.") if isinstance(x, Mapping) else {f"{section}{key}": x})
    return out


def words(overrides: Overrides) -> List[str]:
    return [f"{key}={value(x)}" for key, x in flat(overrides).items()]


def place(path: Path) -> str:
    """A path or name, of which none is an option."""
    text = os.fspath(path)
    return os.path.join(".", text) if text.startswith("-") else text


def options(**settings: Any) -> List[str]:
    """stop_after=5 is `--stop-after 5`, resume=True is `--resume`; None and False are left out."""
    given = {"--" + name.replace("_", "-"): x for name, x in settings.items() if x is not None and x is not False}
    return [word for option, x in given.items() for word in (option, value(x))[:1 if x is True else 2]]


def in_python(message: str, command: Any) -> str:
    """A message that names the options of a command by the keywords that the package takes, and those that it gave."""
    for words_of_it, ours in (("--(clean|corrupted)-text", r"--\1"), ("; see thimble [a-z]+ --help", ""),
                              ("thimble train (.+) --resume", r'thimble.Run("\1").resume()')):
        message = re.sub(words_of_it, ours, message)
    takes = getattr(globals().get("".join(command[1:2])), "__annotations__", {})
    for option, setting in [*zip(command, [*command[1:], ""]), *(("--" + x.replace("_", "-"), "") for x in takes)]:
        if re.fullmatch("--[a-z-]+", option):
            name = {"--split": "splits", "--input": "text", "--html": "file"}.get(option, option[2:].replace("-", "_"))
            keyword = name + ("=True" if takes.get(name) is bool else "=")
            before = rf" (?={re.escape(setting)}(?!\w))|=" if setting else "="
            message = re.sub(rf"(?<![\w-]){option}(?![\w-])(?:{before})?", keyword, message)
    return message


def train(config: Path, overrides: Overrides, out: Optional[Path], resume: bool, stop_after: Optional[int],
          threads: Optional[int]) -> List[str]:
    return ["train", place(config), *words(overrides),
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
    is_one = isinstance(heads, str) or not all(hasattr(head, "__len__") for head in heads)
    names = ",".join(head if isinstance(head, str) else ".".join(map(str, head)) for head in ([heads] if is_one else heads))
    return [*_of_run("ablate", run, checkpoint), *options(sequences=sequences), "--", names]


def patch(run: Path, checkpoint: Checkpoint, clean: Union[int, str, None], corrupted: Union[int, str, None],
          pairs: Any, edges: bool, corruption: Optional[str]) -> List[str]:
    if None not in (clean, corrupted) and isinstance(clean, str) != isinstance(corrupted, str):
        raise TypeError("clean and corrupted: must be two texts, or the numbers of two test sequences")
    pair = {name + "_text" * isinstance(x, str): x for name, x in (("clean", clean), ("corrupted", corrupted))}
    return [*_of_run("patch", run, checkpoint), *options(pairs=pairs, edges=edges, corruption=corruption, **pair)]


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
    return ["sweep", place(file), *words(overrides), *options(out=out, jobs=jobs, json="-")]


def show(config: Path) -> List[str]:
    return ["config", "show", place(config), *options(json="-")]


def compare(runs: Iterable[Path], sequences: Optional[int]) -> List[str]:
    return ["compare", *[place(run) for run in runs], *options(sequences=sequences, json="-")]


def gradcheck(config: Optional[Path], overrides: Overrides, op: Optional[str]) -> List[str]:
    return ["gradcheck", *([] if config is None else [place(config)]), *words(overrides), *options(op=op, json="-")]


def tasks(name: Optional[str]) -> List[str]:
    return ["tasks", *([] if name is None else [place(name)]), *options(json="-")]
