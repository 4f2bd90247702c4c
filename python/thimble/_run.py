"""A run of the program: what it was trained on, how well it does, what its heads do."""

from __future__ import annotations

import copy
import html
import json
import os
import pathlib
import tempfile
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _arguments, _program
from ._arguments import Checkpoint, Overrides
from ._arguments import Head as HeadName
from ._model import Model


class Score(NamedTuple):
    """A score of a head's attention. Which unit and range a score has, docs/inspect.md says; None was not measured."""

    value: Optional[float]
    chance: Optional[float]  # what uniform attention gives
    at_init: Optional[float]  # what the untrained head gave
    attainable: Optional[float]  # the most that attention could give
    eligible: int  # queries that the value is a mean of


class Head:
    """What a head attends to, and what it costs to ablate it, on a sample of the test split.

    name: as commands take it, "1.0" or "cross.1.0"; label: what it does by its scores, "" for none; sentence: what that
    rests on; scores: a Score by name; ablation: by kind ("zero", "mean", "resample") the change in loss and accuracy
    with its interval.
    """

    def __init__(self, result: Mapping[str, Any]):
        self.result = result
        self.name: str = result["name"]
        self.layer: int = result["layer"]
        self.head: int = result["head"]
        self.label: str = result["label"]
        self.verdict: str = result["verdict"]
        self.sentence: str = result["sentence"]
        self.scores = {name: Score(*(score.get(field) for field in Score._fields))
                       for name, score in result["scores"].items()}
        self.ablation: Dict[str, Any] = result.get("ablation", {})

    def __repr__(self) -> str:
        return f"Head {self.name}: {self.sentence or self.label}"


class Attention(NamedTuple):
    """weights: of an encoder an array (layers, heads, queries, keys), else such an array (heads, queries, keys) by the
    name of the attention; nested lists without NumPy. tokens: of the sequence, an encoder-decoder's answer; source: its
    input, [] for an encoder."""

    weights: Any
    tokens: List[str]
    source: List[str]


def _array(x: Any) -> Any:
    try:
        import numpy
    except ImportError:
        return x
    return numpy.array(x, dtype=numpy.float64)


def _columns(path: pathlib.Path) -> Dict[str, List[Any]]:
    """The lines of metrics.jsonl as columns; None where a line has no such number. Lists and objects, such as the scores
    of heads, are left out, and so is a last line that is incomplete yet."""
    lines = [line for line in path.read_text("utf-8").split("\n")[:-1] if line.strip()]
    rows = [row for row in map(json.loads, lines) if "split" in row]
    keys = dict.fromkeys(key for row in rows for key, x in row.items() if not isinstance(x, (list, dict)) and key != "run")
    return {key: [row.get(key) for row in rows] for key in keys}


class Run:
    """The run in a directory, which a program of the same version has trained or is training.

    checkpoint: "best", "final" or a step; by default the newest. Nothing is kept but what was asked of the same
    weights before.
    """

    def __init__(self, directory: Union[str, "os.PathLike[str]"], checkpoint: Checkpoint = None):
        self.directory = pathlib.Path(directory).absolute()
        self.checkpoint = checkpoint
        self._known: Dict[Any, Any] = {}
        if not (self.directory / "data.json").exists():
            raise FileNotFoundError(f"{self.directory}: is no run of thimble; train one with thimble.train()")

    @property
    def path(self) -> pathlib.Path:
        """The file of the checkpoint: the final one, or else that of the last step, or else the best."""
        folder = self.directory / "checkpoints"
        steps = sorted(folder.glob("step-*.safetensors"), key=lambda path: int(path.stem[5:]))
        wanted = [self.checkpoint] if self.checkpoint is not None else ["final", *(p.stem for p in steps[-1:]), "best"]
        names = [name if isinstance(name, str) and not name.isdigit() else f"step-{name}" for name in wanted]
        found = [folder / f"{name}.safetensors" for name in names if (folder / f"{name}.safetensors").exists()]
        if not found:
            raise FileNotFoundError(f"{folder}: has no checkpoint {' or '.join(names)}")
        return found[0]

    @property
    def result(self) -> Dict[str, Any]:
        """The results at the end of training: steps, loss and accuracy of each split. {} while it is not over."""
        path = self.directory / "summary.json"
        return json.loads(path.read_text("utf-8")) if path.exists() else {}

    @property
    def metrics(self) -> Any:
        """The curves as columns: step, split, loss, …; a pandas.DataFrame if that is installed, else a dict of lists."""
        columns = _columns(self.directory / "metrics.jsonl")
        try:
            import pandas
        except ImportError:
            return columns
        return pandas.DataFrame(columns)

    @property
    def weights(self) -> Dict[str, Any]:
        """The parameters as NumPy arrays (which this needs), by PyTorch's names and in its shapes: weights are (out, in).

        As they stand in the file, of which other calls compare the checksum. Raises ValueError where it cannot be read.
        """
        from .safetensors_file import read  # needs NumPy

        try:
            arrays = read(self.path)[0]
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from error
        return {name: x for name, x in arrays.items() if not name.startswith("optimizer.")}

    def torch(self) -> Any:
        """The model, of any kind, as a torch.nn.Module in evaluation mode. Needs PyTorch and PyYAML."""
        from .to_torch import load  # needs PyTorch

        return load(self.path)

    def model(self, overrides: Overrides = None, *, threads: Optional[int] = None) -> Model:
        """The model in a process of its own, which answers for logits, activations, gradients and replaced values, until
        it is closed or forgotten. Needs NumPy."""
        return Model(_arguments.serve(self.directory, self.checkpoint, overrides, threads))

    def resume(self, overrides: Overrides = None, *, stop_after: Optional[int] = None,
               threads: Optional[int] = None) -> "Run":
        """Trains on from the newest checkpoint, with other settings where they may change; returns the run."""
        arguments = _arguments.train(self.directory, overrides, None, True, stop_after, threads)
        _program.call(arguments, progress=True)
        return Run(self.directory)

    def evaluate(self, overrides: Overrides = None, splits: Union[str, Sequence[str]] = (),
                 sequences: Optional[int] = None) -> Dict[str, Any]:
        """Loss and accuracy, by split, each with the number of sequences it is a mean of."""
        return _program.call(_arguments.evaluate(self.directory, self.checkpoint, overrides, splits, sequences))

    def inspect(self, overrides: Overrides = None, *, sequences: int = 1000, examples: int = 0) -> Dict[str, Any]:
        """All that `thimble inspect --json` says, of that many sequences of the test split."""
        return copy.deepcopy(self._once("inspect", overrides, sequences=sequences, examples=examples))

    @property
    def heads(self) -> List[Head]:
        """The heads, layer by layer, as inspect() measures them on at most 1000 test sequences."""
        return [Head(head) for head in self.inspect()["heads"]]

    def attention(self, text: str) -> Attention:
        """The attention weights of one sequence, tokens with spaces between."""
        trace = self.trace(text)
        kinds = trace.get("attentions")
        weights = (_array(trace["attention"]) if kinds is None else
                   {kind["name"]: _array(heads) for kind, heads in zip(kinds, trace["attention"])})
        return Attention(weights, trace["tokens"], trace.get("source", []))

    def trace(self, text: str) -> Dict[str, Any]:
        """Predictions, probabilities, logits and attention of one sequence, as `thimble trace` gives them."""
        return _program.call(_arguments.trace(self.directory, self.checkpoint, text))

    def ablate(self, heads: Union[str, Sequence[HeadName]], sequences: Optional[int] = None) -> Dict[str, Any]:
        """What it costs to ablate heads together, (layer, head) or names such as "cross.0.1", by kind of ablation."""
        return _program.call(_arguments.ablate(self.directory, self.checkpoint, heads, sequences))

    def patch(self, clean: Optional[int] = None, corrupted: Optional[int] = None,
              pairs: Optional[int] = None) -> Dict[str, Any]:
        """Activation patching: the share of the behavior that each head carries, over many pairs of test sequences, or
        over the pair of those two numbers, from 0."""
        return _program.call(_arguments.patch(self.directory, self.checkpoint, clean, corrupted, pairs))

    def generate(self, text: str = "", beams: Optional[int] = None, samples: Optional[int] = None,
                 **how: Any) -> List[Tuple[str, float]]:
        """The answers to an input, or what follows a prompt, likeliest first, each with the natural logarithm of its
        probability.

        With `samples`, as many drawn ones; temperature, top_k, top_p and seed say how, tokens how long they may be."""
        result = _program.call(_arguments.generate(self.directory, self.checkpoint, text, beams=beams, samples=samples, **how))
        return [(answer["text"], answer["log_probability"]) for answer in result["hypotheses"]]

    def report(self, file: Union[str, "os.PathLike[str]"], sequences: int = 1000) -> pathlib.Path:
        """Writes the HTML report, one page that needs nothing else; returns its path."""
        _program.call(_arguments.inspect(self.directory, self.checkpoint, None, sequences=sequences, html=file))
        return pathlib.Path(file)

    def _once(self, what: str, overrides: Overrides, **settings: Any) -> Any:
        file = self.path
        key = (what, str(file), file.stat().st_mtime_ns, json.dumps([overrides, settings], sort_keys=True))
        if key not in self._known:
            if what == "page":
                with tempfile.TemporaryDirectory() as folder:
                    self._known[key] = self.report(pathlib.Path(folder) / "report.html").read_text("utf-8")
            else:
                arguments = _arguments.inspect(self.directory, self.checkpoint, overrides, **settings)
                self._known[key] = _program.call(arguments)
        return self._known[key]

    def __repr__(self) -> str:
        where, result = os.path.relpath(self.directory), self.result
        if not result:
            return f"Run {where}: {'not finished' if self.directory.is_dir() else 'is not there any more'}"
        test = result.get("test") or {}
        said = f"{result['steps']} steps, {result['parameters']} parameters"
        if test.get("loss") is not None:
            said += f", test loss {test['loss']:.4f}"
        if test.get("accuracy") is not None:
            said += f", tokens {100 * test['accuracy']:.2f} % of {test['labels']}"
        return f"Run {where}: {said}"

    def _repr_html_(self) -> Optional[str]:
        try:
            page = html.escape(self._once("page", None), quote=True)
        except (_program.ThimbleError, OSError):
            return None  # without a report a notebook shows the line
        return (f"<p>{html.escape(repr(self))}</p><iframe srcdoc=\"{page}\" style=\"width:100%;height:640px;border:0\">"
                "</iframe>")
