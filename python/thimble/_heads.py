"""What the heads of a run do, and the attention of a sequence."""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _plots
from ._server import needed


class Score(NamedTuple):
    """A score of a head's attention; docs/inspect.md says which range it has. None was not measured."""

    value: Optional[float]
    chance: Optional[float]  # what uniform attention gives
    at_init: Optional[float]  # what the untrained head gave
    attainable: Optional[float]  # the most that attention could give
    eligible: int  # queries that the value is a mean of
    majority: Optional[float]  # the share of these with more than half of their attention there
    matched: Optional[float]  # the largest of chance and the three that follow
    same_positions: Optional[float]
    same_class: Optional[float]
    same_tokens: Optional[float]
    varied: Any  # a Score on examples in which position and content part, or None
    at: Optional[int]  # the offset or position that is best
    kinds: Any  # the value by kind of target, or None


def _score(fields: Mapping[str, Any]) -> Score:
    known = {"matched": fields["chance"], **fields, "varied": _score(fields["varied"]) if "varied" in fields else None}
    return Score._make(known.get(field) for field in Score._fields)


class Head:
    """What a head attends to, and what ablating it costs, on a sample of the test split. name: as in "1.0" or "cross.1.0";
    label: its pattern, "" for none; sentence: what that rests on; summary: in plain words; scores: a Score by name;
    ablation: by kind ("zero", "mean", "resample") the change in loss and accuracy with its interval; hypotheses: of
    Run.test(), by name, with answer ("yes", "no", "open"), p and sentence."""

    def __init__(self, result: Mapping[str, Any], run: Any):
        self.result, self.run = result, run
        self.layer, self.head = int(result["layer"]), int(result["head"])
        self.name, self.label = str(result["name"]), str(result["label"])
        self.verdict, self.sentence, self.summary = (str(result[key]) for key in ("verdict", "sentence", "summary"))
        self.scores: Dict[str, Any] = {name: _score(fields) for name, fields in result["scores"].items()}
        self.ablation: Dict[str, Any] = result.get("ablation", {})
        self.hypotheses: Dict[str, Any] = {one["name"]: one for one in result.get("hypotheses", [])}

    def plot(self, text: Optional[str] = None, ax: Any = None) -> Any:
        """Draws its attention on a text, or on the first test sequence; returns the Axes. Needs Matplotlib."""
        weights, queries, keys = (self.run.example if text is None else self.run.attention(text)).of(self.name)
        return _plots.attention_map(f"head {self.name}", weights, queries, keys, ax)

    def __repr__(self) -> str:
        return f"Head {self.name}: {self.sentence or self.label}"


class Heads(List[Head]):
    """Heads by number or by name, heads["1.0"]; slices are Heads, too."""

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, str):
            names = [head.name for head in self]
            if which not in names:
                raise KeyError(f"{which}: is no head; there are {', '.join(names)}")
            return self[names.index(which)]
        return Heads(super().__getitem__(which)) if isinstance(which, slice) else super().__getitem__(which)

    def frame(self) -> Any:
        """A pandas.DataFrame with a row for each head: its label, the values of its scores, the effects of ablating it."""
        return needed("pandas", "frames").DataFrame([{
            "name": head.name, "label": head.label, "verdict": head.verdict,
            **{name: score.value for name, score in head.scores.items()},
            **{f"{kind}_{what}": effect.get(what) for kind, effect in head.ablation.items()
               for what in ("loss_change", "accuracy_change")}} for head in self])


class Attention(NamedTuple):
    """weights: of an encoder an array (layers, heads, queries, keys), else such an array (heads, queries, keys) by the
    name of the attention. tokens: of the sequence, an encoder-decoder's answer; source: its input, [] for an encoder."""

    weights: Any
    tokens: List[str]
    source: List[str]

    def of(self, head: str) -> Tuple[Any, List[str], List[str]]:
        """The weights of a head by name, and the tokens of their rows, queries, and columns, keys."""
        where, number = head.rsplit(".", 1)
        by_source = where.startswith("encoder"), where.startswith(("encoder", "cross"))
        queries, keys = (self.source if it else self.tokens for it in by_source)
        return self.weights[where if isinstance(self.weights, dict) else int(where)][int(number)], queries, keys


def attention(result: Mapping[str, Any], kinds: Optional[Sequence[Any]], array: Any) -> Attention:
    """Of a sequence as the program describes it, with array(x) in place of nested lists."""
    weights = result["attention"]
    weights = array(weights) if kinds is None else {kind["name"]: array(x) for kind, x in zip(kinds, weights)}
    return Attention(weights, result["tokens"], result.get("source", []))
