"""What a researcher asks the Python package for: attribution, matrices, probes, checkpoints. The rest is pytest's.
Usage: python_research_test.py THIMBLE_BINARY SOURCE_DIR"""

import json
import os
import pathlib
import pickle
import re
import warnings

import pytest

from package_under_test import folder, Known, numpy, run_tests, source, thimble
from thimble import safetensors_file  # noqa: E402

SHORT = {"train.steps": 3, "train.schedule.warmup": 0, "train.batch": 32}
SMALL = {**SHORT, "data.train": 200, "data.validation": 50, "data.test": 50}
PRE = {**SMALL, "model.norm": "pre", "model.heads": 2, "model.layers": 2, "model.output.hidden": 0}
LLAMA = {**SHORT, "model.positions": "rotary", "model.attention.kv_heads": 2, "model.gated": True, "model.bias": False,
         "model.norm_type": "rms", "model.activation": "silu", "model.output.tied": True}
CLASSES = {**SHORT, "model.norm": "pre"}
RUNS = {
    "learned": ("names", SHORT),
    "llama": ("names", LLAMA),
    "rms decoder": ("translation", {**SMALL, "model.norm": "pre", "model.norm_type": "rms", "model.layers": 2,
                                    "model.attention.combine": "sum"}),
    "decoder": ("translation", {**SMALL, "model.norm": "pre"}),
    "summed heads": ("reverse", {**PRE, "model.attention.combine": "sum"}),
    "no projections": ("reverse", {**PRE, "model.attention.in_proj": False, "model.norm_embedding": True}),
    "convolution": ("reverse", {**PRE, "model.heads": 1, "model.mixer": "convolution", "model.norm_weight": False}),
    "no final norm": ("reverse", {**PRE, "model.norm_final": False, "model.d_ff": 0}),
    "last": ("modular_addition", CLASSES),
    "mean": ("modular_addition", {**CLASSES, "model.output.pooling": "mean"}),
    "first": ("modular_addition", {**CLASSES, "model.output.pooling": "first"}),
    "post": ("reverse", {**SMALL, "model.output.hidden": 0}),
    "two layers": ("reverse", {**SMALL, "model.norm": "pre"}),
    "recurrent": ("translation_recurrent", SMALL),
}
SUMS = list(RUNS)[:11]


@pytest.fixture(scope="module")
def runs(folder):
    return Known(lambda kind: thimble.train(*RUNS[kind], out=f"runs/{kind.replace(' ', '_')}"))


def chosen(logits, labels):
    return numpy.take_along_axis(logits, numpy.maximum(labels, 0)[..., None], -1)[..., 0]


@pytest.mark.parametrize("kind, site", [("summed heads", "blocks.0.attn.hook_z"), ("decoder", "decoder.blocks.0.cross.hook_z")])
@pytest.mark.filterwarnings("ignore:no better than")
def test_a_mean_is_that_of_ablation(runs, kind, site):
    with runs[kind].model({"train.precision": "float64"}) as model:
        data = model.data("test", 1000)
        change = numpy.nanmean(model.loss(data, replace={site: ("mean", {"head": 1})})) - numpy.nanmean(model.loss(data))
        theirs = runs[kind].ablate(["cross.0.1" if "cross" in site else (0, 1)])
        assert change != 0 and change == pytest.approx(theirs["mean"]["loss_change"], abs=1e-6)
        mean = numpy.nanmean(model.run_with_cache(data, site)[1][site], 0)
        put = model.run_with_cache(data[:3], site, replace={site: "mean"})[1][site][0]
        assert numpy.allclose(put, numpy.where(numpy.isnan(put), put, mean[:len(put)]), rtol=0, atol=1e-12, equal_nan=True)
        for where, bad, message in ((site, ("mean", {"head": 9}), "head 9; there are 0 to"),
                                    (site.replace("_z", "_pattern"), "mean", "not of attention; give values")):
            with pytest.raises(thimble.InputError, match=re.escape(message)):
                model(data, replace={where: bad})


@pytest.mark.parametrize("kind", SUMS)
def test_parts_sum_to_the_logit(runs, kind):
    with runs[kind].model({"train.precision": "float64"}) as model:
        data = model.data("test", 20)
        data.labels[3] = -1
        logits, cache = model.run_with_cache(data)
        values, parts = cache.logit_attribution(data.labels)
        assert values.shape == (*data.labels.shape, len(parts)) and len(set(parts)) == len(parts)
        there = data.labels >= 0
        assert abs(values.sum(-1) - chosen(logits, data.labels))[there].max() < 1e-10
        assert numpy.isnan(values[~there]).all() and not numpy.isnan(values[there]).any()
        everywhere = cache.logit_attribution(3)[0].sum(-1)  # of one token
        assert numpy.array_equal(numpy.isnan(everywhere), numpy.isnan(logits[..., 3]))
        assert numpy.nanmax(abs(everywhere - logits[..., 3])) < 1e-10
        outputs = model.description["outputs"] or range(len(model.vocabulary))
        by_text = cache.logit_attribution(model.vocabulary[outputs[3]])[0]
        assert numpy.array_equal(by_text.sum(-1), everywhere, equal_nan=True)


@pytest.mark.parametrize("kind", [kind for kind in SUMS if kind not in ("rms decoder", "decoder", "convolution")])
@pytest.mark.filterwarnings("ignore:no better than")
def test_parts_are_those_of_inspect(runs, kind):
    theirs = runs[kind].inspect(sequences=20)["attribution"]
    with runs[kind].model() as model:
        data = model.data("test", 20)
        values, parts = model.run_with_cache(data)[1].logit_attribution(data.labels)
    ours = dict(zip(parts, numpy.nanmean(values.reshape(-1, len(parts)), 0)))
    if "embedding" not in ours:
        ours["embedding"] = ours.pop("token embedding") + ours.pop("position embedding", 0)
    compared = {part["name"]: part["mean"] for part in theirs["parts"] if part["name"] in ours}
    assert list(compared).sort() == list(ours).sort() and len(compared) == len(ours)
    assert max(abs(ours[name] - mean) for name, mean in compared.items()) < 1e-7


def test_hypotheses(runs):
    run, translation = runs["two layers"], runs["decoder"]
    heads = run.test({"mirror": lambda x: [[k == len(x) - 1 - q for k in range(len(x))] for q in range(len(x))],
                      "nothing": lambda x: numpy.zeros((len(x), len(x)), bool)}, sequences=200)
    assert [head.name for head in heads] == [head.name for head in run.heads]
    assert heads[0].hypotheses["mirror"]["answer"] in ("yes", "no", "open")
    mirror, built_in = (one.scores for one in (heads[0], thimble.Run(run.directory).heads[0]))
    assert mirror["task_target"].eligible == 16 * 50 and "nothing" not in heads[0].hypotheses
    assert abs(mirror["task_target"].value - mirror["mirror"].value) < 1e-9
    assert mirror["task_target"].varied.eligible == built_in["mirror"].varied.eligible
    cross = translation.test({"same place": lambda y, x: [[k == q for k in range(len(x))] for q in range(len(y))]}, 50)
    assert cross["cross.0.0"].hypotheses["same place"]["name"] == "same place"
    for rules, message in (({}, "no rule that is true anywhere in 20 test sequences"),
                           ({"none": lambda x: numpy.zeros((len(x), len(x)))}, "no rule that is true anywhere in 20"),
                           ({"wide": lambda x: numpy.ones((len(x), len(x) + 1))}, "^wide: must return 16 rows of 16 for "),
                           ({"flat": lambda x: numpy.ones(len(x))}, "^flat: must return 16 rows of 16 for ")):
        with pytest.raises(ValueError, match=message):
            run.test(rules, 20)
    pairs = [(f"{a} {b}", "odd" if (a + b) % 2 else "even") for a in range(40) for b in range(8)]
    sums = thimble.train(thimble.Task(pairs), {**SHORT, "model.d_model": 8, "model.output.per": "sequence"}, out="runs/sums")
    first = sums.test({"first": lambda x: [[k == 0 for k in range(len(x))] for _ in x]})  # outputs are not the vocabulary
    assert first[0].result["ablation"]["zero"]["labels"] == sums.result["test"]["labels"]


def test_a_wildcard_replaces_each_with_what_fits_it(runs):
    for kind, text, sites, shapes in (("summed heads", "1 2 3", "blocks.*.attn.hook_z", {(1, 3, 2, 16)}),
                                      ("llama", "anna", "*.attn.hook_*", {(1, 4, 5, 5), (1, 5, 4, 8), (1, 5, 2, 8)})):
        with runs[kind].model() as model:
            cache = model.run_with_cache(text, sites, replace={sites: 0.5})[1]
        assert {x.shape for x in cache.values()} == shapes and all((x == 0.5).any() for x in cache.values())


@pytest.mark.parametrize("kind", ["learned", "decoder", "last"])
def test_only_some_positions_are_replied(runs, kind):
    with runs[kind].model() as model:
        data, wanted = model.data("test", 5), [2, 0]
        cache = model.run_with_cache(data)[1]
        some = model._server.ask({"do": "forward", "return": ["*"], "positions": wanted}, data._arrays(False))[1]
        for site in model.sites:
            axes = site["shape"].strip("()").split(", ")
            axis = next((axis for axis, n in enumerate(axes) if n in "TS"), None)
            whole = cache[site["name"]]
            rows = whole if axis is None else whole.take(wanted, axis)
            assert numpy.array_equal(some[site["name"]], rows, equal_nan=True), site


def test_a_loss_that_is_not_a_number_stays_so(runs):
    site, put = "output.weight", {"blocks.0.hook_resid_post": (numpy.inf, {"position": 0})}
    with runs["learned"].model() as model, numpy.errstate(all="ignore"):
        data = model.data("test", 6)
        data.labels[:, 1] = -1  # a position without a label, and what is beyond the lengths
        beyond = thimble.Tokens(data.ids, data.lengths, numpy.where(numpy.arange(16) < data.lengths[:, None], data.labels, 1))
        losses = model.loss(data)
        for batch in (data, beyond):
            assert model.gradients(batch, None, site)[0] == pytest.approx(numpy.nanmean(losses), rel=1e-12)
            assert numpy.isnan(model.gradients(batch, None, site, replace=put)[0])
        assert numpy.isnan(model.gradients(data, None, site, cotangent=numpy.ones((6, 16, 27)), replace=put)[0])


def test_names_of_parts(runs):
    parts = {}
    for kind in ("decoder", "convolution"):
        with runs[kind].model() as model:
            parts[kind] = model.run_with_cache(model.data("test", 2))[1].logit_attribution(1).parts
    assert parts["decoder"] == [
        "token embedding", "position embedding", "head decoder.0.0", "head decoder.0.1", "layer 0 attention bias",
        "head cross.0.0", "head cross.0.1", "layer 0 cross-attention bias", "layer 0 feed-forward", "final norm bias",
        "output bias"]
    assert parts["convolution"][2:4] == ["layer 0 convolution", "layer 0 feed-forward"]


def test_a_head_adds_what_is_lost_without_it(runs):
    """By another way: at a held scale, the logits without the last layer's head lose its part."""
    with runs["no final norm"].model({"train.precision": "float64"}) as model:
        data = model.data("test", 5)
        logits, cache = model.run_with_cache(data)
        without = model(data, replace={"blocks.1.attn.hook_z": (0, {"head": 1})})
        values, parts = cache.logit_attribution(4)
        assert abs(values[..., parts.index("head 1.1")] - (logits - without)[..., 4]).max() < 1e-10


def test_what_has_no_attribution_says_why(runs):
    for kind, message in (("post", "^post-norm: logits are not a sum of parts; train with model.norm pre$"),
                          ("two layers", "^two-layer output net: logits .*; train with model.output.hidden 0$"),
                          ("recurrent", "^recurrent: logits are not a sum of parts$")):
        with runs[kind].model() as model:
            with pytest.raises(ValueError, match=message) as error:
                model.run_with_cache(model.data("test", 2))[1].logit_attribution(1)
            assert "\n" not in str(error.value)
    with runs["learned"].model() as model:
        logits, cache = model.run_with_cache(["anna"], ["*resid_*", "hook_embed", "*mlp_out"])
        with pytest.raises(KeyError, match="blocks.0.attn.hook_z: is not in the cache"):
            cache.logit_attribution("a")
        cache = model.run_with_cache(["anna"])[1]
        for token, message in (("ab", "ab: is no output; there are "), (27, "token 27: outputs are 0 to 26"),
                               (-2, "outputs are 0 to 26, -1 for none")):
            with pytest.raises(ValueError, match=message):
                cache.logit_attribution(token)
    for precision, much in (("float32", 1e-2), ("float64", 1e-8)):
        with runs["learned"].model({"train.precision": precision}) as model:
            cache = model.run_with_cache(["anna"])[1]
            hair = numpy.arange(32) * much
            for site in ("blocks.1.hook_resid_mid", "blocks.1.hook_resid_post", "ln_final.hook_normalized", "logits"):
                changed = model.run_with_cache(["anna"], replace={site: cache[site] + hair[:cache[site].shape[-1]]})[1]
                with pytest.raises(ValueError, match="the parts do not add up to the logits"):
                    changed.logit_attribution("a")
    with runs["learned"].model() as model:
        again = pickle.loads(pickle.dumps(model.run_with_cache(["anna"])[1]))
        assert again.logit_attribution("a").values.shape == (1, 5, 16)
        again.model.close()


def test_matrices_of_circuits(runs):
    with runs["learned"].model() as model:
        cache = model.run_with_cache(["anna"])[1]
        assert numpy.allclose(model.QK(1, 2), model.W_Q[1, 2] @ model.W_K[1, 2].T) and model.QK(1, 2).shape == (32, 32)
        weights, normalized = runs["learned"].weights, cache["blocks.1.ln1.hook_normalized"][0]
        bias = weights["encoder.layers.1.self_attn.in_proj_bias"][64:].reshape(4, 8)[2] @ model.W_O[1, 2]
        through = cache["blocks.1.attn.hook_pattern"][0, 2] @ (normalized @ model.OV(1, 2) + bias)
        assert numpy.allclose(through, cache["blocks.1.attn.hook_z"][0, :, 2] @ model.W_O[1, 2], atol=1e-6)
    with runs["summed heads"].model() as model:
        cache = model.run_with_cache(["1 2 3"])[1]
        out = numpy.einsum("bthd,hdc->btc", cache["blocks.1.attn.hook_z"], model.W_O[1])
        out += runs["summed heads"].weights["encoder.layers.1.self_attn.out_proj.bias"]
        assert numpy.allclose(out, cache["blocks.1.hook_attn_out"], atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*no better than")
def test_attention_of_many(runs):
    texts = {"post": ["1 2 3", "4 5", "6 7 8 9"], "learned": ["anna", "bo"], "decoder": ["mes belles reines", "le roi"]}
    for kind, some in texts.items():
        together, alone = runs[kind].attention(some), [runs[kind].attention(text) for text in some]
        for ours, theirs in zip(together, alone):
            assert (ours.tokens, ours.source) == (theirs.tokens, theirs.source)
            pairs = zip(ours.weights.values(), theirs.weights.values()) if kind == "decoder" else [ours[:1] + theirs[:1]]
            for a, b in pairs:
                assert a.shape == b.shape and a.dtype == b.dtype == numpy.float64 and numpy.allclose(a, b, rtol=0, atol=1e-6)


def test_one_process_for_many(runs, monkeypatch):
    asked, trace = [], thimble.Run.trace
    monkeypatch.setattr(thimble.Run, "trace", lambda run, text: asked.append(text) or trace(run, text))
    runs["post"].attention(["1 2", "3 4"])
    assert asked == []
    runs["decoder"].attention(["le roi", "la reine"])
    assert asked == ["le roi", "la reine"]


def test_checkpoints(runs):
    run = thimble.train("reverse", {**SMALL, "train": {"steps": 12, "checkpoint_series": True, "evaluate_every": 6}}, out="series")
    found = run.checkpoints
    assert {each.checkpoint for each in found} == {1, 2, 5, 10, "best", "final"}
    steps = [each.result["steps"] for each in found]
    assert steps == sorted(steps) and steps[0] == 1 and steps[-1] == 12
    for each in found:
        assert each.result["train"]["step"] == each.result["steps"]
        with each.model() as model:
            assert model.description["weights"] == str(each.path)
    logits = [each.model()(["1 2"]) for each in found[:2]]
    assert (logits[0] != logits[1]).any()


def test_results_of_a_checkpoint_are_its_own():
    run = thimble.Run("series")
    lines = [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
    five = thimble.Run("series", checkpoint="5")
    assert five.result == {"steps": 5, "train": next(line for line in lines if line["step"] == 5)}
    assert repr(five).startswith("Run series, checkpoint 5: 5 steps, train loss ")
    path = run.directory / "checkpoints" / "best.safetensors"
    path.write_bytes((run.directory / "checkpoints" / "step-10.safetensors").read_bytes())  # as if 10 had been the best
    best = thimble.Run("series", checkpoint="best").result
    assert best["steps"] == 10 and "test" not in best and best["train"] == next(x for x in lines if x["step"] == 10)
    assert thimble.Run("series", checkpoint="final").result == run.result and "test" in run.result
    assert thimble.Run("series", checkpoint="init").result == {}
    for wrong in (99, -1, "../x", "step-5", "newest", ""):
        with pytest.raises(FileNotFoundError, match=f"has no checkpoint {wrong}; it has best, final, 1, 2, 5, 10$"):
            thimble.Run("series", checkpoint=wrong)


def test_the_best_checkpoint_has_its_own_step():
    run = thimble.train("reverse", {**SMALL, "train": {"steps": 40, "patience": 2, "evaluate_every": 5,
                                                       "optimizer": {"lr": 0.3}}}, out="patient")
    best = thimble.Run("patient", checkpoint="best").result
    assert best["steps"] == run.result["best"]["step"] < run.result["steps"] == thimble.Run("patient", "final").result["steps"]
    assert best["test"] == run.result["test"] and best["train"]["step"] == best["steps"]


def test_models_from_elsewhere(runs):
    run = runs["post"]
    with run.model() as model, thimble.open(weights=run.path) as alone, \
            thimble.open(run.directory / "config.yaml", run.path, {"train": {"precision": "float64"}}, threads=1) as other:
        logits = model(["1 2 3"])
        assert (alone(["1 2 3"]) == logits).all() and numpy.allclose(other(["1 2 3"]), logits, atol=1e-5)
        assert other(["1"]).dtype == numpy.float64
    with pytest.raises(thimble.InputError, match="^config= requires weights=: give the weights file too$"):
        thimble.open("reverse")(["1"])
    with pytest.raises(thimble.InputError, match="nowhere"):
        thimble.open(weights="nowhere")(["1"])
    names = {}
    exec("from thimble import *", names)
    assert "probe" in names and "open" not in names  # which is Python's


def test_activations_in_a_file(runs, monkeypatch):
    with runs["post"].model() as model:
        data, path = model.data("test", 7), pathlib.Path("kept.safetensors")
        path.write_text("something else")
        assert model.save(path, ["*resid_post", "*pattern"], data) == path
        arrays, metadata = safetensors_file.read(path)
        cache = model.run_with_cache(data, ["*resid_post", "*pattern"])[1]
        assert list(arrays) == ["ids", "lengths", "labels", *cache]
        assert all((arrays[name] == cache[name]).all() for name in cache)
        assert (arrays["labels"] == data.labels).all() and (arrays["ids"] == data.ids).all()
        assert json.loads(metadata["vocabulary"]) == model.vocabulary and metadata["weights"] == str(runs["post"].path)
        model.save(str(path), "hook_embed", [[1, 2], [3, 4]])
        assert {name: list(x.shape) for name, x in safetensors_file.read(path)[0].items()} == {
            "ids": [2, 2], "lengths": [2], "hook_embed": [2, 2, 32]}
        assert safetensors_file.read(path)[0]["lengths"].tolist() == [2, 2]
        model.save("labels.safetensors", "hook_embed", ["1 2", "3"], ["2 1", "3"])
        assert safetensors_file.read("labels.safetensors")[0]["labels"].tolist() == [[2, 1], [3, -1]]
        before = path.read_bytes()
        monkeypatch.setattr(safetensors_file, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full")))
        with pytest.raises(OSError, match="disk full"):
            model.save(path, "*", data)
        assert path.read_bytes() == before and not [name for name in os.listdir(".") if name.startswith(".kept")]


def test_probes_find_what_is_there():
    draw = numpy.random.default_rng(1)
    X = draw.normal(size=(300, 8, 6))
    classes = X[..., :3].argmax(-1) + 10  # which lines tell apart
    found = thimble.probe(X, classes)
    assert found.score > 0.9 > 0.45 > found.control > 0.2 and found.baseline == pytest.approx(1 / 3, abs=0.05)
    assert (found.n_train, found.n_test) == (210 * 8, 90 * 8) and found.classes.tolist() == [10, 11, 12]
    predicted = found.classes[(X @ found.weights + found.bias).argmax(-1)]
    assert (predicted == classes).mean() > 0.9
    number = X @ numpy.arange(6.0) + 3 + 0.1 * draw.normal(size=X.shape[:2])
    found = thimble.probe(X, number)
    assert found.score > 0.99 and abs(found.control) < 0.05 and abs(found.baseline) < 0.01 and found.classes is None
    assert numpy.allclose(found.weights[:, 0], range(6), atol=0.05) and numpy.allclose(found.bias, 3, atol=0.05)
    flat = thimble.probe(X.reshape(-1, 6), number.reshape(-1))
    assert flat.score > 0.99 and flat.n_train == 1680
    again, other = thimble.probe(X, classes), thimble.probe(X, classes, seed=1)
    assert again[:3] == thimble.probe(X, classes)[:3] and (again.weights != other.weights).any()


def test_probes_are_not_helped_by_their_own_sequence():
    draw = numpy.random.default_rng(2)
    X = numpy.repeat(draw.normal(size=(60, 1, 80)), 10, axis=1)  # all positions of a sequence are the same
    y = numpy.repeat(draw.integers(0, 2, size=(60, 1)), 10, axis=1)
    assert thimble.probe((X + 1e-9 * draw.normal(size=X.shape)).reshape(600, 80), y.reshape(600)).score > 0.95  # what leaks
    for inputs, labels in ((X, y), (X.reshape(600, 80), y.reshape(600))):  # equal rows are one
        scores = [thimble.probe(inputs, labels, seed=seed).score for seed in range(10)]
        assert 0.35 < numpy.mean(scores) < 0.65, scores


def test_probes_leave_out_what_does_not_count():
    draw = numpy.random.default_rng(3)
    X, y = draw.normal(size=(100, 5, 3)), draw.integers(0, 2, size=(100, 5))
    X[:, :, 0] += 6 * y
    X[:, 4], y[:, 3] = numpy.nan, -1
    found = thimble.probe(X, y)
    assert found.n_train + found.n_test == 300 and found.score > 0.95 and found.classes.tolist() == [0, 1]
    X[:, 4] = numpy.inf
    words = numpy.array(["no", "yes"])[numpy.maximum(y, 0)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert thimble.probe(X, y)[:3] == found[:3] and thimble.probe(X, words).n_test == 120
    number = numpy.where(y < 0, numpy.nan, y)
    assert thimble.probe(X, number).n_test == 90
    for X, y, message in ((X, y[:50], "X must be"), (X[:1], y[:1], "1 sequences with . different labels are too few"),
                          (X, numpy.zeros((100, 5), int), "100 sequences with 1 different labels")):
        with pytest.raises(ValueError, match=message):
            thimble.probe(X, y)


@pytest.mark.filterwarnings("ignore:no better than")
def test_the_table_of_calls(runs):
    """Each call on the right of the table in docs/python.md, after the block above it."""
    page = (source / "docs" / "python.md").read_text()
    block, table = re.search(r"TransformerLens user types\n\n```python\n(.*?)```\n\n(.*?)\n\n", page, re.S).groups()
    rows = [line.split(" | ") for line in table.split("\n")[2:]]
    assert len(rows) == 18 and all(len(row) == 2 for row in rows)
    thimble.train("names", {"train.steps": 60}, out="runs/py_names")
    names = {"thimble": thimble}
    exec(block, names)
    for _, right in rows:
        calls = re.findall("`(.*?)`", right)
        assert calls, right
        for call in calls:
            exec(call, names)


if __name__ == "__main__":
    run_tests(__file__)
