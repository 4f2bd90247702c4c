"""A run of the program: what it was trained on, how well it does, what its heads do."""

import contextlib
import copy
import json
import os
import pathlib
import re
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _arguments, _hypotheses, _plots, _program
from ._arguments import Checkpoint, Head as HeadName, Overrides, Path, Texts
from ._heads import Attention, Head, Heads, attention
from ._model import Model
from ._server import needed
from .safetensors_file import read

_SPLITS = ("test", "validation", "train")


def _rows(path: pathlib.Path) -> List[Dict[str, Any]]:
    """The lines of metrics.jsonl that have a split, without a last line that is incomplete yet."""
    lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
    return [row for row in map(json.loads, filter(str.strip, lines)) if "split" in row]


def _step(path: pathlib.Path) -> int:
    with path.open("rb") as file:
        return int(json.loads(file.read(int.from_bytes(file.read(8), "little")))["__metadata__"]["step"])


class Run:
    """The run in a directory, which a program of the same version has trained or is training. checkpoint: "best", "final" or
    a step; by default the newest; "init" for a model() before training. What was asked of the same weights is kept."""

    def __init__(self, directory: Path, checkpoint: Checkpoint = None):
        self.directory = pathlib.Path(directory).absolute()
        self.checkpoint = int(checkpoint) if str(checkpoint).isdigit() else checkpoint  # type: ignore[arg-type]
        self._known: Dict[Any, Any] = {}
        if not (self.directory / "data.json").exists():
            raise FileNotFoundError(f"{self.directory}: is no run of thimble; train one with thimble.train()")
        if self.checkpoint not in (None, "init", *self._files()):
            raise FileNotFoundError(f"{self.directory}: has no checkpoint {checkpoint}; it has "
                                    + ", ".join(map(str, self._files())))

    def _files(self) -> Dict[Union[str, int], pathlib.Path]:
        """The checkpoints by name, steps in their order."""
        paths = sorted((self.directory / "checkpoints").glob("*.safetensors"), key=lambda path: (len(path.name), path))
        return {int(path.stem[5:]) if path.stem.startswith("step-") else path.stem: path for path in paths
                if re.fullmatch(r"best|final|step-\d+", path.stem)}

    @property
    def checkpoints(self) -> List["Run"]:
        """The run at each checkpoint, in the order of their steps."""
        return [Run(self.directory, name) for name, _ in sorted(self._files().items(), key=lambda one: _step(one[1]))]

    @property
    def path(self) -> pathlib.Path:
        """The file of the checkpoint: that of the result, or else the final one, that of the last step, or the best."""
        files, result = self._files(), self._summary().get("result", "final")
        steps = [name for name in files if isinstance(name, int)]
        wanted = [self.checkpoint] if self.checkpoint is not None else [result, "final", *steps[-1:], "best"]
        found = [files[name] for name in wanted if name in files]
        if not found:
            raise FileNotFoundError(f"{self.directory}: has no checkpoint {' or '.join(map(str, wanted))}")
        return found[0]

    @property
    def result(self) -> Dict[str, Any]:
        """What training measured: steps, loss and accuracy by split, {} while it goes on; of a checkpoint, that of its step."""
        summary, name = self._summary(), self.checkpoint
        if name is None or name == "final" == summary.get("result", "final"):
            return summary
        file, of = self._files().get(name), summary.get(name) or {}  # type: ignore[arg-type]
        step = _step(file) if file else None
        rows = {row["split"]: row for row in _rows(self.directory / "metrics.jsonl") if row.get("step") == step}
        rows.update(of if of.get("step") == step else {})
        return {"steps": step, **{split: rows[split] for split in _SPLITS if split in rows}} if file else {}

    def _summary(self) -> Dict[str, Any]:
        path = self.directory / "summary.json"
        return json.loads(path.read_text("utf-8")) if path.exists() else {}

    @property
    def metrics(self) -> Dict[str, List[Any]]:
        """The curves as columns: step, split, loss, …; None where a line has no such number. Lists and objects, such as the
        scores of heads, are left out."""
        rows = _rows(self.directory / "metrics.jsonl")
        keys = dict.fromkeys(key for row in rows for key, x in row.items() if not isinstance(x, (list, dict)) and key != "run")
        return {key: [row.get(key) for row in rows] for key in keys}

    @property
    def weights(self) -> Dict[str, Any]:
        """The parameters in the file as NumPy arrays (which this needs), by PyTorch's names, in its shapes: (out, in)."""
        return {name: x for name, x in read(self.path)[0].items() if not name.startswith("optimizer.")}

    def torch(self) -> Any:
        """The model, of any kind, as a torch.nn.Module in evaluation mode. Needs PyTorch and PyYAML."""
        for module in ("numpy", "torch", "yaml"):
            needed(module, "modules")
        from .to_torch import load

        return load(self.path)

    def model(self, overrides: Overrides = None, *, threads: Optional[int] = None) -> Model:
        """The model in a process of its own, which answers for logits, activations, gradients and replaced values, until
        it is closed or forgotten. Needs NumPy."""
        return Model(_arguments.serve(self.directory, self.checkpoint, overrides, threads))

    def resume(self, overrides: Overrides = None, *, stop_after: Optional[int] = None,
               threads: Optional[int] = None) -> "Run":
        """Trains on from the newest checkpoint, with other settings where they may change; returns the run."""
        _program.call(_arguments.train(self.directory, overrides, None, True, stop_after, threads), progress=True)
        return Run(self.directory)

    def evaluate(self, overrides: Overrides = None, splits: Texts = (), sequences: Optional[int] = None) -> Dict[str, Any]:
        """Loss and accuracy, by split, each with the number of sequences it is a mean of."""
        return _program.call(_arguments.evaluate(self.directory, self.checkpoint, overrides, splits, sequences))

    def inspect(self, overrides: Overrides = None, *, sequences: int = 1000, examples: int = 1) -> Dict[str, Any]:
        """All that `thimble inspect --json` says, of that many sequences of the test split."""
        file = self.path
        key = (str(file), file.stat().st_mtime_ns, *_arguments.words(overrides), sequences, examples)
        if key not in self._known:
            self._known[key] = _program.call(_arguments.inspect(self.directory, self.checkpoint, overrides,
                                                                sequences=sequences, examples=examples))
        return copy.deepcopy(self._known[key])

    @property
    def heads(self) -> Heads:
        """The heads, layer by layer, as inspect() measures them on at most 1000 test sequences."""
        return Heads(Head(head, self) for head in self.inspect()["heads"])

    @property
    def example(self) -> Attention:
        """The attention of the first test sequence, in nested lists."""
        measured = self.inspect()
        return attention(measured["examples"][0], measured.get("attentions"), list)

    def attention(self, text: Texts) -> Any:
        """The Attention of a sequence, tokens with spaces between, or a list of that of each. Needs NumPy."""
        np = needed("numpy", "arrays")
        if isinstance(text, str):
            trace = self.trace(text)
            return attention(trace, trace.get("attentions"), lambda x: np.array(x, "f8"))
        with self.model() as model:
            if all(site["name"] != "blocks.0.attn.hook_pattern" for site in model.sites):
                return [self.attention(one) for one in text]
            batch, vocabulary = model.tokens(text), model.vocabulary
            patterns = list(model.run_with_cache(batch, "*hook_pattern")[1].values())
            return [Attention(weights[..., :n, :n], [vocabulary[i] for i in ids[:n]], [])
                    for weights, ids, n in zip(np.stack(patterns, 1).astype("f8"), batch.ids, batch.lengths)]

    def test(self, hypotheses: Mapping[str, Callable[..., Any]], sequences: int = 1000) -> Heads:
        """Tests what heads attend to: rules by name, each a function of the tokens of a sequence (of a decoder's, and then
        of its source) that returns a matrix, queries by keys, of what is true. Each Head has its answers as hypotheses, but
        to rules that are true nowhere. Needs NumPy."""
        vocabulary = json.loads((self.directory / "data.json").read_text("utf-8"))["vocabulary"]
        with tempfile.TemporaryDirectory() as folder, self.model() as model:
            file = pathlib.Path(folder) / "hypotheses.jsonl"
            with file.open("w", encoding="utf-8") as out:
                out.writelines(_hypotheses.rows(model, "test", sequences, vocabulary, hypotheses))
                with contextlib.suppress(_program.InputError):  # the task has none
                    out.writelines(_hypotheses.rows(model, "varied", 300, vocabulary, hypotheses))
            if '"attends": [[' not in file.read_text("utf-8"):
                raise ValueError(f"hypotheses: there is no rule that is true anywhere in {sequences} test sequences")
            result = _program.call(_arguments.inspect(self.directory, self.checkpoint, None, hypotheses=file,
                                                      sequences=sequences, examples=0))
        return Heads(Head(head, self) for head in result["heads"])

    def trace(self, text: str) -> Dict[str, Any]:
        """Predictions, probabilities, logits and attention of one sequence, as `thimble trace` gives them."""
        return _program.call(_arguments.trace(self.directory, self.checkpoint, text))

    def ablate(self, heads: Union[str, Sequence[HeadName]], sequences: Optional[int] = None) -> Dict[str, Any]:
        """What it costs to ablate heads together, (layer, head) or names such as "cross.0.1", by kind of ablation."""
        return _program.call(_arguments.ablate(self.directory, self.checkpoint, heads, sequences))

    def patch(self, clean: Union[int, str, None] = None, corrupted: Union[int, str, None] = None, pairs: Any = None,
              edges: bool = False, corruption: Optional[str] = None) -> Dict[str, Any]:
        """Activation patching: the share of the behavior that each head carries, or each edge, with the smallest circuit. Over
        many pairs of test sequences, corrupted by "resample", "token K", "target" or "order"; over the pair of two numbers,
        from 0, or of two texts; or over those of a file, `pairs`."""
        return _program.call(_arguments.patch(self.directory, self.checkpoint, clean, corrupted, pairs, edges, corruption))

    def generate(self, text: str = "", beams: Optional[int] = None, samples: Optional[int] = None,
                 **how: Any) -> List[Tuple[str, float]]:
        """The answers to an input, or what follows a prompt, likeliest first, each with the natural logarithm of its
        probability. With `samples`, as many drawn ones; temperature, top_k, top_p and seed say how, tokens how long."""
        result = _program.call(_arguments.generate(self.directory, self.checkpoint, text, beams=beams, samples=samples, **how))
        return [(answer["text"], answer["log_probability"]) for answer in result["hypotheses"]]

    def report(self, file: Path, sequences: int = 1000) -> pathlib.Path:
        """Writes the HTML report, one page that needs nothing else; returns its path."""
        _program.call(_arguments.inspect(self.directory, self.checkpoint, None, sequences=sequences, html=file))
        return pathlib.Path(file)

    def plot(self) -> Any:
        """Draws loss and accuracy of each split by step, in two Axes, which it returns. Needs Matplotlib."""
        return _plots.curves(self.metrics)

    def __repr__(self) -> str:
        where, result = os.path.relpath(self.directory), self.result
        where += "" if self.checkpoint is None else f", checkpoint {self.checkpoint}"
        if not result:
            return f"Run {where}: {'not finished' if self.directory.is_dir() else 'is not there any more'}"
        split = next((split for split in _SPLITS if result.get(split)), "")
        numbers = result.get(split, {})
        said = f"{result['steps']} steps" + (f", {result['parameters']} parameters" if "parameters" in result else "")
        if numbers.get("loss") is not None:
            said += f", {split} loss {numbers['loss']:.4f}"
        if numbers.get("accuracy") is not None:
            said += f", tokens {100 * numbers['accuracy']:.2f} % of {numbers['labels']}"
        return f"Run {where}: {said}"

    def _repr_html_(self) -> Optional[str]:
        """What the heads do, and the map of the one that costs most, if they can be measured; else nothing."""
        try:
            heads = self.heads
            most = max(heads, key=lambda head: abs(head.ablation.get("zero", {}).get("loss_change") or 0))
            return _plots.page(repr(self), [(head.name, head.label or head.verdict, head.summary) for head in heads],
                               most.name, *self.example.of(most.name))
        except (_program.ThimbleError, OSError, ValueError):
            return None
