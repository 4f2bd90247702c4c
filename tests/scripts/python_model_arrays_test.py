"""The arrays, losses and gradients of models of every kind, from Python. The rest is pytest's.
Usage: python_model_arrays_test.py THIMBLE_BINARY SOURCE_DIR"""

import json
import re

import pytest

from package_under_test import folder, Known, numpy, run_tests, source, thimble

QUICK = {"train.schedule.warmup": 0, "train.batch": 32}
RUNS = {
    "reverse": ("reverse", {"train.steps": 40, "data.train": 500, "data.validation": 50, "data.test": 300,
                            "model.heads": 2, "model.layers": 2}),
    "text": ("names", {"train.steps": 5}),
    "llama": ("names", {"train.steps": 3, "model.positions": "rotary", "model.attention.kv_heads": 2, "model.gated": True,
                        "model.bias": False, "model.norm_type": "rms", "model.activation": "silu"}),
    "pair": ("translation", {"train.steps": 5, "data.train": 200}),
    "recurrent": ("translation_recurrent", {"train.steps": 2, "data.train": 200}),
    "tied": ("reverse", {"train.steps": 3, "data.train": 500, "data.test": 50, "model.heads": 2,
                         "model.attention.tie_query_key": True}),
    "classes": ("modular_addition", {"train.steps": 3}),
    "convolution": ("reverse", {"train.steps": 3, "data.train": 500, "data.test": 50, "model.mixer": "convolution"}),
}
KINDS = list(RUNS)
LAST_Z = "blocks.1.attn.hook_z"


@pytest.fixture(scope="module")
def runs(folder):
    return Known(lambda kind: thimble.train(RUNS[kind][0], {**QUICK, **RUNS[kind][1]}, out=f"runs/{kind}"))


@pytest.fixture(scope="module")
def models(runs):
    known = Known(lambda kind: runs[kind].model())
    yield known
    for model in known.values():
        model.close()


@pytest.fixture(scope="module")
def doubles(runs):
    """The same in double precision, for differences."""
    known = Known(lambda kind: runs[kind].model({"train.precision": "float64"}))
    yield known
    for model in known.values():
        model.close()


def own_values(cache, site):
    return numpy.nan_to_num(cache[site])


def test_logits_are_those_of_trace(runs, models):
    for kind, text in (("reverse", "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6"), ("reverse", "7 0 7"), ("text", "anna"),
                       ("llama", "anna"), ("classes", None), ("convolution", "1 2 3")):
        text = text or models[kind].texts(models[kind].data("test", 1))[0]
        theirs = numpy.array(runs[kind].trace(text)["logits"])
        ours = models[kind]([text])[0]
        assert numpy.allclose(ours, theirs.reshape(ours.shape), rtol=0, atol=1e-6), kind
    for kind in ("pair", "recurrent"):
        trace, model = runs[kind].trace("mes belles reines"), models[kind]
        ids = [[model.vocabulary.index(token) for token in trace["tokens"]]]
        sources = model.tokens("mes belles reines").sources
        ours = model({"ids": ids, "sources": sources})[0]
        assert numpy.allclose(ours, trace["logits"], rtol=0, atol=1e-6), kind


def test_attention_is_that_of_trace(runs, models):
    text = "1 2 3 4 5 6 7"
    cache = models["reverse"].run_with_cache(text, "*hook_pattern")[1]
    theirs = runs["reverse"].attention(text).weights
    for layer in range(2):
        assert numpy.allclose(cache[f"blocks.{layer}.attn.hook_pattern"][0], theirs[layer], atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_of_sites(models, kind):
    model = models[kind]
    data = model.data("test", 7)
    logits, cache = model.run_with_cache(data)
    assert list(cache) == [site["name"] for site in model.sites]
    assert numpy.array_equal(cache["logits"], logits, equal_nan=True)
    sizes = {"B": 7, "T": data.ids.shape[1], "S": 0 if data.sources is None else data.sources.shape[1]}
    for site in model.sites:
        shape = tuple(sizes[n] if n in sizes else int(n) for n in site["shape"].strip("()").split(", "))
        assert cache[site["name"]].shape == shape and cache[site["name"]].dtype == numpy.float32, site
        assert site["meaning"] and len(shape) > (1 if site["name"] == "logits" else 2), site
        alone = model.run_with_cache(data, site["name"])[1]  # whoever else is asked
        assert numpy.array_equal(alone[site["name"]], cache[site["name"]], equal_nan=True), site


def test_sites_are_what_they_say(models):
    model = models["text"]  # whose norms come before
    cache = model.run_with_cache(["anna", "jonathan"])[1]
    for layer in range(model.config["model"]["layers"]):
        at = f"blocks.{layer}."
        before, mid = cache[at + "hook_resid_pre"], cache[at + "hook_resid_mid"]
        assert numpy.allclose(before + cache[at + "hook_attn_out"], mid, atol=1e-5, equal_nan=True)
        assert numpy.allclose(mid + cache[at + "hook_mlp_out"], cache[at + "hook_resid_post"], atol=1e-5, equal_nan=True)
        pattern = own_values(cache, at + "attn.hook_pattern")
        sums = pattern.sum(-1)
        assert (numpy.isclose(sums, 1, atol=1e-5) | (sums == 0)).all() and (numpy.triu(pattern, 1) == 0).all()
        z = numpy.einsum("bhqk,bkhd->bqhd", pattern, own_values(cache, at + "attn.hook_v"))
        assert numpy.allclose(z, own_values(cache, at + "attn.hook_z"), atol=1e-5)
    names = [name for name in cache if name.endswith("resid_post")]
    some = model.run_with_cache(["anna"], ["*resid_post", "hook_embed", "blocks.0.*resid_post"])[1]
    assert set(some) == {*names, "hook_embed"}
    assert "  hook_embed (1, 5, 32)" in repr(some).split("\n") and len(repr(cache)) < 2000
    with pytest.raises(KeyError, match="hook_embd: is not in the cache, did you mean hook_embed[?]"):
        some["hook_embd"]


def test_matrices_of_heads(runs, models):
    model, weights = models["reverse"], runs["reverse"].weights  # whose norms come after
    cache = model.run_with_cache(["1 2 3 4"])[1]
    assert model.W_E.shape == (10, 32) and model.W_Q.shape == (2, 2, 32, 16) and model.W_O.shape == (2, 2, 16, 32)
    with pytest.raises(ValueError, match="final.safetensors: has no output.weight, which this needs"):
        model.W_U
    for layer in range(2):
        at, file = f"blocks.{layer}.", f"encoder.layers.{layer}.self_attn."
        biases = weights[file + "in_proj_bias"].reshape(3, 2, 16)
        for i, (name, matrix) in enumerate((("q", model.W_Q), ("k", model.W_K), ("v", model.W_V))):
            made = numpy.einsum("btc,hcd->bthd", cache[at + "hook_resid_pre"], matrix[layer]) + biases[i]
            assert numpy.allclose(made, cache[f"{at}attn.hook_{name}"], atol=1e-5), name
        out = numpy.einsum("bthd,hdc->btc", cache[at + "attn.hook_z"], model.W_O[layer]) + weights[file + "out_proj.bias"]
        assert numpy.allclose(out, cache[at + "hook_attn_out"], atol=1e-5)
    model = models["llama"]
    logits, cache = model.run_with_cache(["anna"])
    assert numpy.allclose(cache["ln_final.hook_normalized"] @ model.W_U, logits, atol=1e-5)
    shared = numpy.repeat(cache["blocks.0.attn.hook_k"], 2, axis=2)
    made = numpy.einsum("btc,hcd->bthd", cache["blocks.0.ln1.hook_normalized"], model.W_K[0])
    assert model.W_K.shape == model.W_Q.shape and numpy.allclose(made, shared, atol=1e-5)
    model, weights = models["tied"], runs["tied"].weights
    cache = model.run_with_cache(["1 2 3 4"])[1]
    for name, matrix, first in (("q", model.W_Q, 0), ("k", model.W_K, 0), ("v", model.W_V, 32)):
        bias = weights["encoder.layers.0.self_attn.in_proj_bias"][first:first + 32].reshape(2, 16)
        made = numpy.einsum("btc,hcd->bthd", cache["blocks.0.hook_resid_pre"], matrix[0]) + bias
        assert numpy.allclose(made, cache[f"blocks.0.attn.hook_{name}"], atol=1e-5), name
    for kind in ("pair", "recurrent", "convolution"):
        with pytest.raises(ValueError, match="those of an encoder with attention, which this model is not"):
            models[kind].W_V


@pytest.mark.parametrize("kind", ["reverse", "text", "llama", "pair", "recurrent", "convolution"])
def test_padding_is_nan(models, kind):
    model = models[kind]
    texts = ["anna", "jonathan", "bo"] if kind in ("text", "llama") else ["les reines", "mes belles reines", "le roi"]
    texts = ["1 2", "3 1 4 1 5", "2"] if kind in ("reverse", "convolution") else texts
    together, cache = model.run_with_cache(texts)
    batch = model.tokens(texts)
    rows, sources = batch.lengths, batch.source_lengths
    for site in model.sites:
        array, axes = cache[site["name"]], site["shape"].strip("()").split(", ")
        for b, text in enumerate(texts):
            alone = model.run_with_cache(text, site["name"])[1][site["name"]][0]
            inside = tuple(slice({"T": rows, "S": sources}[n][b]) if n in "TS" else slice(None) for n in axes[1:])
            assert numpy.allclose(array[b][inside], alone, atol=1e-6), (site, text)
            rest = numpy.isnan(array[b])
            assert not rest[inside].any() and rest.sum() == rest.size - alone.size, (site, text)
    if kind in ("reverse", "text"):
        garbage = numpy.where(numpy.arange(batch.ids.shape[1]) < rows[:, None], batch.ids, 10 ** 6)
        assert numpy.array_equal(model({"ids": garbage, "lengths": rows}), together, equal_nan=True)


def test_texts_and_ids_round_trip(models):
    for kind, texts in (("reverse", ["3 1 4 1 5", "9", "2 6"]), ("convolution", ["0 0"])):
        tokens = models[kind].tokens(texts)
        assert models[kind].texts(tokens) == texts == models[kind].texts(tokens.ids, tokens.lengths)
        assert [models[kind].vocabulary[i] for i in tokens.ids[0]] == texts[0].split()
        assert tokens.labels is None and tokens.ids.dtype == numpy.int32
    anna = models["text"].tokens("anna")  # the tokens of a text follow each other
    assert (anna.labels[0, :-1] == anna.ids[0, 1:]).all() and models["text"].loss("anna").shape == anna.ids.shape
    for kind in KINDS:
        data = models[kind].data("test", 20)
        if data.sources is None:
            again = models[kind].tokens(models[kind].texts(data))
            for a, b in zip(data, again):
                assert (data.lengths == again.lengths).all() and all(
                    (x[:n] == y[:n]).all() for x, y, n in zip(data.ids, again.ids, data.lengths)), (kind, a, b)
    pair = models["pair"].tokens(["mes belles reines", "le roi"], ["my beautiful queens", "the king"])
    assert models["pair"].texts(pair) == ["<begin> my beautiful queens", "<begin> the king"]
    assert [models["pair"].vocabulary[i] for i in pair.labels[0]] == ["my", "beautiful", "queens", "<end>"]
    assert pair.labels[1].tolist()[-1] == -1 and pair.source_lengths.tolist() == [3, 2]


def test_texts_of_a_request_are_those_of_their_ids(models):
    for kind, texts, targets in (("reverse", ["3 1 4 1 5", "9 2"], ["5 1 4 1 3", "2 9"]), ("text", ["anna", "bo"], [])):
        model = models[kind]
        ids = model.tokens(texts, targets or None)
        request = {"do": "forward", "return": ["logits", "loss"], "texts": texts, "targets": targets}
        reply, arrays = model._server.ask(request)
        assert reply["sequences"] == 2 and reply["whole"] == 0
        assert numpy.array_equal(arrays["logits"], model(ids), equal_nan=True)
        assert numpy.array_equal(arrays["loss"], model.loss(ids), equal_nan=True)
        asked = []
        ask, model._server.ask = model._server.ask, lambda *a: asked.append(a[0]["do"]) or ask(*a)
        try:
            assert numpy.array_equal(model(texts), arrays["logits"], equal_nan=True)
        finally:
            del model._server.ask
        assert asked == ["forward"]  # one way to and fro
    with pytest.raises(thimble.InputError, match="there is no token x"):
        models["reverse"](["3 1", "x"])


def test_the_place_of_data(models):
    model = models["text"]
    lines = (source / "configs/data/names.txt").read_text().split("\n")
    data = model.data("test", 20)
    for text, where in zip(model.texts(data), data.where):
        file, line = where.rsplit(":", 1)
        assert file.endswith("names.txt") and lines[int(line) - 1] == text.strip()


def test_replaced_values_reach_what_follows(models):
    model, text = models["reverse"], ["1 2 3 4 5", "6 7 8 9 0"]
    logits, cache = model.run_with_cache(text)
    uniform = numpy.full((5, 5), 0.2)  # for all sequences and heads
    other, changed = model.run_with_cache(text, replace={"blocks.1.attn.hook_pattern": uniform})
    same = [name for name in cache if numpy.array_equal(cache[name], changed[name])]
    order = [site["name"] for site in model.sites]
    assert same == order[:order.index("blocks.1.attn.hook_pattern")] and abs(other - logits).max() > 1e-4
    assert (changed["blocks.1.attn.hook_pattern"] == numpy.float32(0.2)).all()
    mean = numpy.broadcast_to(cache["blocks.1.attn.hook_v"].mean(1, keepdims=True), changed[LAST_Z].shape)
    assert numpy.allclose(changed[LAST_Z], mean, atol=1e-6)
    for value in (uniform.astype("f4")[None, None], numpy.full((2, 2, 5, 5), 0.2), 0.2, numpy.float32(0.2)):
        assert (model(text, replace={"blocks.1.attn.hook_pattern": value}) == other).all()


@pytest.mark.parametrize("kind", KINDS)
def test_own_values_change_nothing(models, kind):
    model = models[kind]
    data = model.data("test", 5)
    logits, cache = model.run_with_cache(data)
    wrong = [site for site in cache if not site.endswith("hook_scale")  # NaN beyond the lengths, which nobody reads
             if not numpy.array_equal(model(data, replace={site: cache[site]}), logits, equal_nan=True)]
    assert not wrong


def test_a_part_is_replaced(models):
    model, text = models["reverse"], ["1 2 3 4 5", "6 7 8 9 0"]
    cache, draw = model.run_with_cache(text, LAST_Z)[1], numpy.random.default_rng(1)
    value = draw.normal(size=cache[LAST_Z].shape).astype("f4")
    mask = draw.random(value.shape) < 0.5
    parts = {(): ((), mask | True), "head": ({"head": 1}, numpy.arange(2)[:, None] == 1),
             "position": ({"position": [0, 3]}, numpy.isin(numpy.arange(5), [0, 3])[:, None, None]),
             "mask": ({"mask": mask}, mask), "of one": ({"mask": mask[:1]}, mask[:1]),
             "both": ({"head": [0], "position": numpy.int64(2), "mask": mask[0]},
                      mask[0] & (numpy.arange(5)[:, None, None] == 2) & (numpy.arange(2)[:, None] == 0))}
    for where, inside in parts.values():
        for put in (value, value[:1], 0):
            wanted = numpy.where(inside, put, cache[LAST_Z])
            got = model.run_with_cache(text, LAST_Z, replace={LAST_Z: (put, dict(where))})[1][LAST_Z]
            assert (got == wanted).all(), where
    twice = model.run_with_cache(text, LAST_Z, replace=[(LAST_Z, value), (LAST_Z, (0, {"head": 0}))])[1][LAST_Z]
    assert (twice[:, :, 0] == 0).all() and (twice[:, :, 1] == value[:, :, 1]).all()


def test_zeroing_a_head_is_ablation(runs, models):
    model = models["reverse"]
    data = model.data("test", 300)
    zeroed = {LAST_Z: (0, {"head": 0})}
    _, cache = model.run_with_cache(data, ["blocks.1.hook_attn_out", LAST_Z])
    lost = cache[LAST_Z][:, :, 0] @ model.W_O[1, 0]
    after = model.run_with_cache(data, "blocks.1.hook_attn_out", replace=zeroed)[1]
    assert numpy.allclose(cache["blocks.1.hook_attn_out"] - after["blocks.1.hook_attn_out"], lost, atol=1e-5)
    change = model.loss(data, replace=zeroed).mean() - model.loss(data).mean()
    theirs = runs["reverse"].ablate([(1, 0)], sequences=300)
    assert re.search(r'"zero"', json.dumps(theirs))
    assert change == pytest.approx(theirs["zero"]["loss_change"], abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:no better than")
def test_losses_sum_to_what_eval_says(runs, models, kind):
    model = models[kind]
    data = model.data("test", 10 ** 6)
    losses = model.loss(data)
    assert losses.dtype == numpy.float64 and losses.shape == data.labels.shape
    assert (numpy.isnan(losses) == (data.labels < 0)).all()
    theirs = runs[kind].evaluate(splits="test")["test"]
    assert numpy.nanmean(losses) == pytest.approx(theirs["loss"], rel=1e-6) and (data.labels >= 0).sum() == theirs["labels"]
    logits = model(data[:10]).astype("f8")
    norms = numpy.log(numpy.exp(logits).sum(-1))
    chosen = numpy.take_along_axis(logits, numpy.maximum(data.labels[:10], 0)[..., None], -1)[..., 0]
    assert numpy.allclose((norms - chosen)[data.labels[:10] >= 0], losses[:10][data.labels[:10] >= 0], atol=1e-5)


def difference(f, step=1e-5):
    return (f(step) - f(-step)) / (2 * step)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_sites_are_differences(doubles, kind):
    model, draw = doubles[kind], numpy.random.default_rng(2)
    data = model.data("test", 3)
    cache = model.run_with_cache(data)[1]
    names = [site["name"] for site in model.sites if not site["read_only"]]
    loss, gradients = model.gradients(data, None, names)
    assert loss == pytest.approx(numpy.nanmean(model.loss(data)), rel=1e-12) and list(gradients) == names
    wrong = []
    for name in names:
        assert gradients[name].shape == cache[name].shape and gradients[name].dtype == numpy.float64
        assert (gradients[name][numpy.isnan(cache[name])] == 0).all(), name
        value = own_values(cache, name)
        direction = numpy.where(numpy.isnan(cache[name]), 0, draw.normal(size=value.shape))
        if name.endswith("pattern"):
            direction *= value > 0  # the others are masked
        direction *= numpy.isfinite(value)  # as scores are
        differs = difference(lambda e: numpy.nanmean(model.loss(data, replace={name: value + e * direction})))
        of_leaf = (model.gradients(data, None, name, replace={name: value})[1][name] * direction).sum()
        product = (gradients[name] * direction).sum()
        is_leaf = name.startswith("cross.")  # what a step reads depends on the step before, unless it is replaced
        if of_leaf != pytest.approx(differs, rel=1e-5, abs=1e-9) or not (is_leaf or product == pytest.approx(of_leaf)):
            wrong.append((name, product, of_leaf, differs))
    assert not wrong


def test_gradients_through_a_site_that_is_partly_replaced(doubles):
    model, draw = doubles["reverse"], numpy.random.default_rng(3)
    data, site, before = model.data("test", 4), "blocks.0.attn.hook_z", "blocks.0.hook_resid_pre"
    cache = model.run_with_cache(data)[1]
    put = draw.normal(size=cache[site].shape)
    mask = draw.random(put.shape) < 0.3
    for where, inside in (({"head": 0}, numpy.arange(2)[:, None] == 0), ({"mask": mask}, mask),
                          ({"position": [2, 5]}, numpy.isin(numpy.arange(16), [2, 5])[:, None, None])):
        def loss(value=put, x=cache[before]):
            return model.loss(data, replace={before: x, site: (value, where)}).mean()  # noqa: B023

        direction = draw.normal(size=put.shape)
        value, gradients = model.gradients(data, None, [site, before], replace={before: cache[before], site: (put, where)})
        assert value == pytest.approx(loss(), rel=1e-12)
        of_put = difference(lambda e: loss(value=put + e * direction))
        assert (gradients[site] * direction * inside).sum() == pytest.approx(of_put, rel=1e-6, abs=1e-10), where
        way = draw.normal(size=cache[before].shape)
        through_rest = difference(lambda e: loss(x=cache[before] + e * way))
        assert (gradients[before] * way).sum() == pytest.approx(through_rest, rel=1e-6, abs=1e-10), where
    whole = model.gradients(data, None, ["blocks.0.attn.hook_v"], replace={site: put})[1]
    assert (whole["blocks.0.attn.hook_v"] == 0).all()  # nothing flows back through what is replaced


def test_gradients_of_a_product_with_the_logits(doubles):
    model, draw = doubles["reverse"], numpy.random.default_rng(4)
    logits, cache = model.run_with_cache(["1 2 3", "4 5"])
    cotangent = draw.normal(size=logits.shape)
    sites = ["logits", "blocks.0.hook_mlp_out"]
    value, gradients = model.gradients(["1 2 3", "4 5"], names=sites, cotangent=cotangent)
    again = model.gradients(["1 2 3", "4 5"], names=sites, cotangent=numpy.where(numpy.isnan(logits), logits, cotangent))
    assert again[0] == value and all((again[1][name] == gradients[name]).all() for name in sites)
    assert value == pytest.approx(numpy.nansum(logits * cotangent), rel=1e-12)
    assert numpy.allclose(gradients["logits"], numpy.where(numpy.isnan(logits), 0, cotangent))
    way = draw.normal(size=cache["blocks.0.hook_mlp_out"].shape)
    differs = difference(lambda e: numpy.nansum(cotangent * model(["1 2 3", "4 5"], replace={
        "blocks.0.hook_mlp_out": own_values(cache, "blocks.0.hook_mlp_out") + e * way})))
    assert (gradients["blocks.0.hook_mlp_out"] * way).sum() == pytest.approx(differs, rel=1e-6)


@pytest.mark.parametrize("kind", ["reverse", "text", "pair"])
def test_gradients_are_those_of_the_whole_batch(doubles, kind):
    model = doubles[kind]
    data = model.data("test", 300)
    stack = "decoder." if kind == "pair" else ""
    names = [*(one["name"] for one in model.parameters), f"{stack}blocks.0.hook_resid_mid"]
    loss, gradients = model.gradients(data, None, names)
    labels = (data.labels >= 0).sum(1)
    sums = {one["name"]: numpy.zeros(one["shape"]) for one in model.parameters}
    total = 0.0
    for i, count in enumerate(labels):
        value, of_one = model.gradients(data[i], None, names)
        total += value * count
        for name in sums:
            assert of_one[name].shape == tuple(sums[name].shape)
            sums[name] += of_one[name] * count
        assert numpy.allclose(of_one[names[-1]][0] * count / labels.sum(), gradients[names[-1]][i], rtol=0, atol=1e-9)
    assert total / labels.sum() == pytest.approx(loss, rel=1e-9)
    for name in sums:
        assert numpy.allclose(sums[name] / labels.sum(), gradients[name], rtol=0, atol=1e-9), name
    assert any(abs(x).max() > 1e-4 for x in sums.values())


def test_one_thread_has_the_bits_of_many(runs, doubles):
    model = doubles["text"]
    data = model.data("test", 300)
    names = ["*", "blocks.0.hook_resid_mid"]
    with runs["text"].model({"train.precision": "float64"}, threads=1) as single:
        assert numpy.array_equal(single(data), model(data), equal_nan=True)
        ours, theirs = model.gradients(data, None, names)[1], single.gradients(data, None, names)[1]
        assert all((ours[name] == theirs[name]).all() for name in theirs)


if __name__ == "__main__":
    run_tests(__file__)
