"""A trained model that answers for its arrays: logits, activations, attention, gradients, with replaced values."""

import contextlib
import dataclasses
import difflib
import fnmatch
import json
import os
import pathlib
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _server, safetensors_file as files
from ._arguments import Path, Texts
from ._attribution import Attribution, attribute

np: Any = None


@dataclasses.dataclass(eq=False, repr=False)
class Tokens:
    """Sequences as ids, with their lengths; of data also the labels, -1 where there is none, and their places in the data
    file. sources: those of an encoder-decoder. data[:10] and data[[3, 1]] are some of them."""

    ids: Any
    lengths: Any = None
    labels: Any = None
    sources: Any = None
    source_lengths: Any = None
    where: Any = None

    def __iter__(self) -> Iterator[Any]:  # so that one can write tokens, labels = data
        return iter((self, self.labels))

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> "Tokens":
        chosen = np.arange(len(self))[rows].reshape(-1)
        return Tokens(**{name: np.asarray(x)[chosen] for name, x in vars(self).items() if x is not None})

    def __repr__(self) -> str:
        return f"Tokens of {len(self)} sequences{', with labels' if self.labels is not None else ''}"

    def _arrays(self, labels: bool) -> Dict[str, Any]:
        names = ("ids", "lengths", "sources", "source_lengths", *(["labels"] if labels else []))
        return {name: _integers(name, x) for name in names for x in [getattr(self, name)] if x is not None}


class Cache(Dict[str, Any]):
    """Arrays by the name of their site, and the model that they are of."""

    def __init__(self, arrays: Mapping[str, Any], model: "Model", logits: Any):
        super().__init__(arrays)
        self.model, self.logits = model, logits

    def logit_attribution(self, token: Any) -> Attribution:
        """What each part of the model adds to the logit of a token: its text or id, or an array of ids, such as labels."""
        return attribute(self.model, self, token)

    def __missing__(self, name: str) -> Any:
        close = difflib.get_close_matches(name, self, 1)
        raise KeyError(f"{name}: is not in the cache{f', did you mean {close[0]}?' if close else '; name it in names'}")

    def __repr__(self) -> str:
        return "\n  ".join(["Cache of", *(f"{name} {x.shape}" for name, x in self.items())])


def _integers(name: str, x: Any) -> Any:
    array = np.asarray(x)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name}: must be integers, not {array.dtype}")
    out = np.ascontiguousarray(array, "<i4")
    if array.dtype != out.dtype and not (out == array).all():
        raise ValueError(f"{name}: holds {array[out != array][0]}, which is too large")
    return out


def _padded(name: str, x: Any, filling: int) -> Tuple[Any, Any]:
    """Rows of integers as an array, and their lengths if these differ."""
    lengths = [len(row) for row in x if hasattr(row, "__len__")] if isinstance(x, (list, tuple)) else []
    if len(set(lengths)) < 2:
        return _integers(name, x), None
    out = np.full((len(x), max(lengths)), filling, "<i4")
    for to, row in zip(out, x):
        to[:len(row)] = _integers(name, row)
    return out, np.array(lengths, "<i4")


def _within(outputs: Tuple[int, ...], lengths: Any) -> Any:
    """Which outputs (B, T) are within their row's length; all of outputs (B)."""
    has_all = lengths is None or len(outputs) == 1
    return np.ones(outputs, bool) if has_all else np.arange(outputs[1]) < np.reshape(lengths, (-1, 1))


def _floats(rule: str, x: Any) -> Any:
    array = np.asarray(x)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{rule}, not {x!r:.50}")
    return np.ascontiguousarray(array, array.dtype if array.dtype.str in ("<f4", "<f8") else "<f8")


def _texts(x: Any) -> Optional[List[str]]:
    """The texts that this is, a text or many, or nothing."""
    if isinstance(x, str):
        return [x]
    if x is None or isinstance(x, (Tokens, Mapping)):
        return None
    return list(x) if len(x) > 0 and isinstance(next(iter(x)), str) else None


def _described(key: str, meaning: str) -> Any:
    return property(lambda self: self.description[key], doc=meaning)


class Model(contextlib.AbstractContextManager["Model"]):
    """A model that answers for its arrays. run.model() makes it; its process starts with the first call and ends with
    close(), or when nobody knows the model any more; after that, or when the process has died, a call starts another.
    Sequences are texts, ids (B, T), a list of lists of ids of any lengths, or Tokens. replace={site: value} puts values in
    place of those of sites: 0, or "mean", that of 1000 test sequences by position, or an array of the site's shape, or one
    that broadcasts to it; or (value, {"head": 0, "position": [1, 2], "mask": array}) for a part. It may also be a list of
    (site, value), applied in order. Calls may come from several threads."""

    def __init__(self, arguments: Sequence[str]):
        global np
        np = _server.needed("numpy", "arrays")
        self._server = _server.Server(arguments)
        self._tensors: Dict[int, Dict[str, Any]] = {}  # of the file of weights as it was written then

    def __call__(self, x: Any, *, replace: Any = None) -> Any:
        """The logits (B, T, V), or (B, V) of a model with one output for each sequence."""
        return self._forward(x, ["logits"], replace)["logits"]

    def run_with_cache(self, x: Any, names: Texts = "*", *, replace: Any = None) -> Tuple[Any, Cache]:
        """The logits, and the arrays of sites; * in a name stands for any characters."""
        wanted = _texts(names) or list(names)
        out = self._forward(x, [*wanted, "logits"], replace)
        asked = any(fnmatch.fnmatchcase("logits", name) for name in wanted)
        return out["logits"], Cache({name: x for name, x in out.items() if asked or name != "logits"}, self, out["logits"])

    def loss(self, x: Any, targets: Any = None, *, replace: Any = None) -> Any:
        """The loss of each label in nats, NaN where there is none. targets: texts, or labels as data() has them."""
        return self._forward(self._labelled(x, targets), ["loss"], replace, labels=True)["loss"]

    def gradients(self, x: Any, targets: Any = None, names: Texts = (), *, cotangent: Any = None,
                  replace: Any = None) -> Tuple[float, Dict[str, Any]]:
        """The mean loss over all labels, and its derivatives by the values of sites and parameters. With a cotangent, an
        array of the logits' shape, their product with it takes the place of the loss. A replaced value is a leaf: its
        derivative is that by the value that was put there."""
        wanted = _texts(names) or list(names)
        batch = self._labelled(x, targets) if cotangent is None else self._batch(x)
        if cotangent is None:
            out = self._forward(batch, ["loss"], replace, True, {"gradients": wanted})
            losses = out.pop("loss")
            value = losses[_within(losses.shape, batch.lengths) & (np.asarray(batch.labels) >= 0)].mean()
        else:
            cotangent = _floats("cotangent: must be an array of numbers", cotangent)
            request = {"gradients": wanted, "cotangent": "cotangent"}
            out = self._forward(batch, ["logits"], replace, False, request, {"cotangent": cotangent})
            product = out.pop("logits") * cotangent
            value = product[_within(product.shape[:-1], batch.lengths)].sum()
        return float(value), {name[len("gradient."):]: array for name, array in out.items()}

    def data(self, split: str = "test", sequences: Any = 1000, *, first: int = 0) -> Tokens:
        """The first sequences of a split, from `first` on, or those of the given numbers, with their labels."""
        which = ({"indices": _integers("sequences", sequences).tolist()} if np.ndim(sequences) else
                 {"first": int(first), "count": int(sequences)})
        reply, arrays = self._server.ask({"do": "data", "split": split, **which})
        return Tokens(**arrays, where=np.array(reply["where"]))

    def tokens(self, texts: Texts, targets: Optional[Texts] = None) -> Tokens:
        """The ids of texts; with targets, or of a model of text, the labels, too."""
        request = {"do": "tokens", "texts": _texts(texts) or list(texts), "targets": _texts(targets) or list(targets or ())}
        return Tokens(**self._server.ask(request)[1])

    def texts(self, ids: Any, lengths: Any = None) -> List[str]:
        """The texts of ids, or of Tokens."""
        batch = self._batch(ids) if lengths is None else dataclasses.replace(self._batch(ids), lengths=lengths)
        return self._server.ask({"do": "texts"}, batch._arrays(False))[0]["texts"]

    def save(self, file: Path, names: Texts, x: Any, targets: Any = None, *, replace: Any = None) -> pathlib.Path:
        """Writes the arrays of sites, with ids, lengths and labels, as a safetensors file whose metadata have the vocabulary;
        a file that is there is replaced once all of it is written."""
        path, batch = pathlib.Path(file), self._batch(x) if targets is None else self._labelled(x, targets)
        arrays = {name: array.astype("<i8") for name, array in batch._arrays(batch.labels is not None).items()}
        arrays.setdefault("lengths", np.full(len(batch), arrays["ids"].shape[1], "<i8"))
        arrays.update(self.run_with_cache(batch, names, replace=replace)[1])
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            part = pathlib.Path(folder) / path.name
            files.write(part, arrays, {"vocabulary": json.dumps(self.vocabulary), "weights": str(self.description["weights"])})
            os.replace(part, path)
        return path

    description = property(lambda self: self._server.description, doc="All that the program says of it, see docs/serve.md.")
    config: Dict[str, Any] = _described("config", "The config, section by section.")
    vocabulary: List[str] = _described("vocabulary", "The tokens, by id.")
    sites: List[Dict[str, Any]] = _described("sites", "What has an array, in the order of a pass: name, shape, meaning.")
    parameters: List[Dict[str, Any]] = _described("parameters", "name and shape of each; run.weights has their values.")
    W_E = property(lambda self: self._weight("token_embedding.weight"), doc="Of tokens (vocabulary, d_model).")
    W_Q = property(lambda self: self._projections("q"), doc="Of queries (layers, heads, d_model, d_key).")
    W_K = property(lambda self: self._projections("k"), doc="Of keys; those that heads share are repeated for each.")
    W_V = property(lambda self: self._projections("v"), doc="Of values, as W_K.")
    W_O = property(lambda self: np.stack([self._head_outputs(f"encoder.layers.{layer}.self_attn.", *self._heads("z"))
                                          for layer in range(self.config["model"]["layers"])]),
                   doc="Of the outputs of heads (layers, heads, d_value, d_model).")
    W_U = property(lambda self: (self.W_E if self.config["model"]["output"]["tied"] else self._weight("output.weight")).T,
                   doc="From the residual stream to the logits (d_model, outputs).")

    def QK(self, layer: int, head: int) -> Any:
        """W_Q W_Kᵀ, (d_model, d_model): from a query's and a key's vector to their score."""
        return self.W_Q[layer, head] @ self.W_K[layer, head].T

    def OV(self, layer: int, head: int) -> Any:
        """W_V W_O, (d_model, d_model): from the vector that is attended to, to what the head adds."""
        return self.W_V[layer, head] @ self.W_O[layer, head]

    def _head_outputs(self, attention: str, heads: int, columns: int) -> Any:
        if self.config["model"]["attention"]["combine"] == "sum":
            return np.stack([self._weight(f"{attention}out_proj.{head}.weight").T for head in range(heads)])
        return self._weight(f"{attention}out_proj.weight").T.reshape(heads, columns, -1)

    def _heads(self, which: str) -> List[int]:
        """How many heads of how many columns a site has."""
        shape = next((x["shape"] for x in self.sites if x["name"] == f"blocks.0.attn.hook_{which}"), None)
        if shape is None:
            raise ValueError("matrices by head are those of an encoder with attention, which this model is not; "
                             "run.weights has its parameters")
        return [int(x) for x in shape.strip("()").split(", ")[2:]]

    def _projections(self, which: str) -> Any:
        sizes, at, out = [self._heads(x) for x in "qkv"], "qkv".index(which), []
        first = 1 if at and self.config["model"]["attention"]["tie_query_key"] else 0  # as queries are the keys
        end, (heads, columns) = sum(heads * columns for heads, columns in sizes[first:at + 1]), sizes[at]
        for layer in range(self.config["model"]["layers"]):
            rows = self._weight(f"encoder.layers.{layer}.self_attn.in_proj_weight")[end - heads * columns:end]
            out.append(np.repeat(rows.reshape(heads, columns, -1).transpose(0, 2, 1), sizes[0][0] // heads, axis=0))
        return np.stack(out)

    def _weight(self, name: str) -> Any:
        path, written = self.description["weights"], self.description["written"]
        if path is None:
            raise ValueError("weights before training are in no file")
        if written not in self._tensors:
            if os.stat(path).st_mtime_ns != written:
                raise ValueError(f"{path}: was written again; close() this model, so that it reads the new weights")
            tensors = files.read(path)[0]
            self._tensors = {written: {key: x.astype(np.promote_types(x.dtype, "f4")) for key, x in tensors.items()}}
        if name not in self._tensors[written]:
            raise ValueError(f"{path}: has no {name}, which this needs; run.weights has what there is")
        return self._tensors[written][name]

    def _vector(self, name: str) -> Any:
        """A vector in double precision, None if the model has none of that name."""
        return self._weight(name).astype("f8") if any(one["name"] == name for one in self.parameters) else None

    def _outputs(self, token: Any) -> Any:
        """The numbers of outputs, of a token's text or of numbers."""
        names = [self.vocabulary[i] for i in self.description["outputs"]] or self.vocabulary
        if isinstance(token, str) and token not in names:
            raise ValueError(f"{token}: is no output; there are {' '.join(names[:20])} …")
        numbers = _integers("token", names.index(token) if isinstance(token, str) else token)
        if ((numbers < -1) | (numbers >= len(names))).any():
            raise ValueError(f"token {numbers.max()}: outputs are 0 to {len(names) - 1}, -1 for none")
        return numbers

    def _batch(self, x: Any) -> Tokens:
        if isinstance(x, Tokens):
            return x
        if isinstance(x, Mapping):
            return Tokens(**x)
        texts = _texts(x)
        if texts is not None:
            return self.tokens(texts)
        ids, lengths = _padded("ids", x, 0)
        return Tokens(ids[None] if ids.ndim == 1 else ids, lengths)

    def _labelled(self, x: Any, targets: Any) -> Tokens:
        texts, answers = _texts(x), _texts(targets)
        if answers is not None and texts is None:
            raise ValueError("targets that are texts need inputs that are texts; with ids give labels, an array of ids")
        batch = self.tokens(texts, answers) if texts is not None else self._batch(x)
        if targets is not None and answers is None:
            batch = dataclasses.replace(batch, labels=_padded("labels", targets, -1)[0])
        if batch.labels is None:
            raise ValueError("there are no labels; give targets: a text for each input, as in [\"3 1 4\"], [\"4 1 3\"], or "
                             "labels, an array of ids with -1 where there is none; or give what data() returns")
        return batch

    def _forward(self, x: Any, names: Sequence[str], replace: Any, labels: bool = False,
                 keys: Mapping[str, Any] = {}, more: Mapping[str, Any] = {}) -> Dict[str, Any]:
        request: Dict[str, Any] = {"do": "forward", "return": names, **keys}
        if not replace and (texts := _texts(x)):
            return self._server.ask({**request, "texts": texts})[1]
        arrays = {**self._batch(x)._arrays(labels), **more}
        pairs = replace.items() if isinstance(replace, Mapping) else replace or ()
        each = [(name, value) for site, value in pairs for name in ("*" in site and [
            one["name"] for one in self.sites if fnmatch.fnmatchcase(one["name"], site) and not one["read_only"]]) or [site]]
        request["replace"] = [self._replacement(i, site, value, arrays) for i, (site, value) in enumerate(each)]
        return self._server.ask(request, arrays)[1]

    def _replacement(self, i: int, site: str, value: Any, arrays: Dict[str, Any]) -> Dict[str, Any]:
        """A replacement, whose arrays are added to those of the request."""
        value, where = value if isinstance(value, tuple) and len(value) == 2 else (value, {})
        if isinstance(value, tuple) or not isinstance(where, Mapping):
            raise TypeError(f'replace {site}: a part is (value, {{"head": 0}}), with head, position or mask')
        out: Dict[str, Any] = {"site": site}
        if isinstance(value, str) and value == "mean":
            out["mean"] = 1000
        elif not (np.ndim(value) == 0 and value == 0):
            out["values"], numbers = f"value {i} of {site}", _floats(f'replace {site}: must be "mean" or numbers', value)
            arrays[out["values"]] = self._broadcast(site, numbers, arrays)
        for key, x in where.items():
            if key == "mask":
                if np.asarray(x).dtype.kind != "b":
                    raise TypeError(f"replace {site}: mask must be booleans, not {np.asarray(x).dtype}")
                out["mask"] = f"mask {i} of {site}"
                arrays[out["mask"]] = self._broadcast(site, np.ascontiguousarray(x), arrays)
            elif key in ("head", "position"):
                out[key + "s"] = _integers(key, np.atleast_1d(x)).tolist()
            else:
                raise ValueError(f"replace {site}: there is no {key!r}; it is head, position or mask")
        return out

    def _broadcast(self, site: str, x: Any, arrays: Mapping[str, Any]) -> Any:
        """Repeats what has too few elements for a site; what does not fit is left for the program to refuse."""
        shape = next((one["shape"] for one in self.sites if one["name"] == site), "()").strip("()").split(", ")
        sizes = {"B": len(x) if x.ndim == len(shape) else 1,
                 **{key: arrays[name].shape[-1] for key, name in (("T", "ids"), ("S", "sources")) if name in arrays}}
        with contextlib.suppress(ValueError):
            return np.ascontiguousarray(np.broadcast_to(x, [int(sizes.get(n, n)) for n in shape]))
        return x

    def close(self) -> None:
        """Ends the process; a call starts another."""
        self._server.close()

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> Any:  # another process of the same
        return Model, (self._server.arguments,)

    def __repr__(self) -> str:
        return f"Model({self._server.arguments!r})"
