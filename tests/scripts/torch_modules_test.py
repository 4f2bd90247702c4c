"""For every key of a model, the module that run.torch() gives has thimble's logits, and its values at all sites, within
1e-9 in float64.

Usage: torch_modules_test.py THIMBLE_BINARY SOURCE_DIR
"""

import contextlib
import copy
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import yaml
from torch import nn

program, source = os.path.realpath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(source / "python"))
os.environ["THIMBLE"] = program
import thimble  # noqa: E402

torch.set_num_threads(1)  # spinning threads would starve thimble
TOLERANCE = 1e-9
SHORT = ["train.precision=float64", "data.train=200", "data.validation=10", "data.test=20", "train.steps=3",
         "train.batch=32", "train.threads=1", "train.evaluate_every=0", "train.schedule.warmup=0",
         "train.optimizer.lr=0.05"]
# Of configs/reverse.yaml: the models of docs/tutorial.md, of LLaMA's kind, of GPT-2's, and others.
MODELS = ["positions=rotary"] + [f"{words} task.length=6 task.min_length=3" for words in """
positions=rotary rotary=halves rotary_base=500 norm=pre norm_type=rms norm_epsilon=0.01 bias=false gated=true
 activation=silu heads=4 attention.kv_heads=2 output.hidden=0 attention.mask=causal output.per=next layers=2
positions=learned position_std=0.5 norm=pre activation=gelu_tanh heads=4 attention.mask=causal output.per=next
 output.hidden=0 output.tied=true layers=2
positions=learned norm=pre norm_type=rms norm_weight=false norm_embedding=true norm_final=false bias=false heads=4
 output.hidden=0 output.tied=true init_std=0.3 init_scaled=true attention.mask=causal output.per=next
positions=none norm_embedding=true norm_weight=false activation=gelu heads=2 max_length=20
norm=pre norm_final=false bias=false activation=tanh embedding_std=0.5
positions=alibi heads=3 attention.d_key=5 attention.d_value=3 attention.combine=sum norm_epsilon=0.1
positions=alibi heads=2 attention.tie_query_key=true attention.score=cosine attention.combine=sum
 attention.mask=causal bias=false
attention.in_proj=false attention.score=general heads=4 norm_type=rms d_ff=0 layers=2
attention.score=additive heads=4 attention.kv_heads=1 task.name=majority output.per=sequence
attention.score=linear heads=2 norm=pre d_ff=0 task.name=majority output.per=sequence output.pooling=last
attention.score=dot attention.in_proj_std=0.3 task.name=majority output.per=sequence output.pooling=first
mixer=convolution window=5 norm=pre gated=true
mixer=convolution window=4 attention.mask=causal output.per=next positions=learned bias=false d_ff=0
kind=encoder_decoder output.per=next norm=pre positions=rotary heads=4 attention.kv_heads=2 gated=true layers=2
kind=encoder_decoder output.per=next positions=alibi heads=2 attention.tie_query_key=true d_ff=0 norm_type=rms
 d_model=24
kind=encoder_decoder output.per=next norm=pre positions=learned heads=2 attention.in_proj=false attention.combine=sum
 attention.score=additive
kind=encoder_decoder output.per=next positions=none heads=2 attention.d_key=3 attention.d_value=5 attention.score=linear
kind=recurrent d_model=12 output.per=next output.hidden=0 heads=1 layers=1 d_ff=64 positions=sinusoidal
dropout=0.25 attention.dropout=0.5 layers=2""".replace("\n ", " ").strip().split("\n")]


def call(*arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"thimble {' '.join(map(str, arguments))}: {done.stderr}"
    return done.stdout


def section_keys(section, prefix=""):
    for key, value in section.items():
        yield from section_keys(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]


def inputs_of(data):
    arrays = (data.ids, data.lengths) if data.sources is None else (data.sources, data.ids, data.source_lengths)
    return [torch.from_numpy(array).long() for array in arrays]


def values_of(module, inputs, names=None):
    """The logits and the values of points by name, of a pass; by default of all points."""
    names = names or [name for name, _ in module.named_modules() if name.split(".")[-1].startswith("hook_")]
    values = {}
    with contextlib.ExitStack() as hooks:
        for name in names:
            hooks.enter_context(module.get_submodule(name).register_forward_hook(
                lambda *passed, name=name: values.update({name: passed[-1].detach().numpy()})))
        values["logits"] = module(*inputs).detach().numpy()
    assert set(values) == {*names, "logits"}, f"points that no pass reaches: {set(names) - set(values)}"
    return values


def difference(what, ours, theirs):
    """How far an array of thimble, NaN beyond the length of a sequence, and one of PyTorch are apart."""
    assert ours.shape == theirs.shape, f"{what} has shape {ours.shape}, PyTorch's {theirs.shape}"
    valid, hidden = numpy.isfinite(ours), numpy.isneginf(ours)  # hidden: scores of keys that a mask hides
    assert numpy.isneginf(theirs[hidden]).all(), f"{what}: PyTorch's is finite where a mask hides a key"
    worst = numpy.abs(ours - theirs)[valid].max()
    assert worst < TOLERANCE, f"{what} differs by {worst}"
    assert numpy.ptp(ours[valid]) > 1e-3, f"{what} is all equal, which shows nothing"
    return worst


def compare(words, run):
    """Logits, sites, their shapes and attention() of a batch with padding."""
    module = run.torch()
    with run.model({"train.precision": "float64"}) as model:
        data = model.data("test", 8)
        cache = model.run_with_cache(data)[1]
    inputs = inputs_of(data)
    values, weights = values_of(module, inputs), module.attention(*inputs)
    if module.config["kind"] == "recurrent":
        cache = {"logits": cache["logits"]}  # which has no points
    for name in [name for name in cache if name.endswith("hook_scale")]:  # which is no point
        del cache[name]
    assert set(values) == set(cache), f"{words}: sites that one has: {set(values) ^ set(cache)}"
    for kind, layers in weights.items() if isinstance(weights, dict) else [("blocks", weights)]:
        patterns = [value for name, value in values.items() if name.endswith("hook_pattern") and kind in name
                    and (kind == "cross" or ".cross." not in name)]
        assert module.config["kind"] == "recurrent" or len(layers) == len(patterns), f"{words}: {kind}"
        assert all((ours.detach().numpy() == pattern).all() for ours, pattern in zip(layers, patterns))
    return max(difference(f"{words}: {name}", cache[name], values[name]) for name in cache)


def hooks_replace(run):
    """What a hook returns takes the place of a value, as replace= does in thimble, in a copy of the module, too."""
    module, site, heads = copy.deepcopy(run.torch()), "blocks.0.attn.hook_z", torch.tensor([0, 1, 1, 1.0])
    with run.model({"train.precision": "float64"}) as model:
        data = model.data("test", 8)
        before = values_of(module, inputs_of(data))["logits"]
        module.get_submodule(site).register_forward_hook(lambda point, given, z: z * heads[:, None])
        after = module(*inputs_of(data)).detach().numpy()
        difference("without a head", model(data, replace={site: (0, {"head": 0})}), after)
    assert numpy.abs(before - after).max() > 1e-3, "a hook changes nothing"


def dropout(run):
    """In training mode values are left out at random where thimble leaves them out, and the others grow."""
    module = run.torch().train()
    inputs = [torch.randint(0, 10, (64, 6), generator=torch.Generator().manual_seed(5))]
    eye = torch.eye(6, 32)[None, :, None].double()  # of which attention makes its weights
    module.blocks[0].attn.hook_v.register_forward_hook(lambda point, given, v: eye.expand(v.shape))
    hidden = {}
    module.encoder.layers[1].linear2.register_forward_pre_hook(lambda layer, given: hidden.update(values=given[0]))
    values = values_of(module, inputs)
    relu = hidden["values"][torch.from_numpy(values["blocks.1.mlp.hook_post"] > 0)]
    for value in (values["blocks.0.hook_resid_pre"], values["blocks.1.hook_attn_out"], values["blocks.1.hook_mlp_out"],
                  relu.detach().numpy()):
        assert 0.2 < (value == 0).mean() < 0.3, f"dropout 0.25 left out {(value == 0).mean()}"
    share = values["blocks.0.attn.hook_z"].transpose(0, 2, 1, 3)[..., :6] / values["blocks.0.attn.hook_pattern"]
    assert (numpy.isclose(share, 0) | numpy.isclose(share, 2)).all() and 0.45 < numpy.isclose(share, 0).mean() < 0.55
    assert (module(*inputs) != module(*inputs)).any() and (module.eval()(*inputs) == module(*inputs)).all()


def plain_torch(run):
    """Both stacks of a plain encoder-decoder are those of PyTorch's own classes, which load their parameters."""
    module = run.torch()
    config, pre = module.config, module.config["norm"] == "pre"
    with run.model() as model:
        inputs = inputs_of(model.data("test", 8))[:2]
    values = {name: torch.from_numpy(value) for name, value in values_of(module, inputs).items()}
    end = "ln_final.hook_normalized" if pre else f"blocks.{config['layers'] - 1}.hook_resid_post"
    memory, mask = values[f"encoder.{end}"], torch.ones([inputs[1].shape[1]] * 2).triu(1).bool()
    for stack, kind, whole, given in (
            ("encoder", nn.TransformerEncoderLayer, nn.TransformerEncoder, []),
            ("decoder", nn.TransformerDecoderLayer, nn.TransformerDecoder, [memory, mask])):
        layer = kind(32, config["heads"], 64, 0.0, "relu", config["norm_epsilon"], batch_first=True, norm_first=pre)
        norm = nn.LayerNorm(32, config["norm_epsilon"]) if pre else None
        theirs = whole(layer, config["layers"], norm).double()
        theirs.load_state_dict(getattr(module, stack).state_dict())
        found = theirs(values[f"{stack}.blocks.0.hook_resid_pre"], *given)
        difference(f"PyTorch's {stack}", values[f"{stack}.{end}"].numpy(), found.detach().numpy())


def main():
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)

        def train(name, words):
            keys = [word if word.startswith("task.") else f"model.{word}" for word in words.split()]
            call("train", source / "configs" / "reverse.yaml", *SHORT, *keys, "--out", work / name, "--quiet")
            return thimble.Run(work / name)

        runs = [train(f"run{number}", words) for number, words in enumerate(MODELS)]
        worst = max(map(compare, MODELS, runs))
        settings = yaml.safe_load(call("config", "show", source / "configs" / "reverse.yaml"))["model"]
        given = {word.split("=")[0] for words in MODELS for word in words.split()}
        assert set(section_keys(settings)) <= given, f"no model with {set(section_keys(settings)) - given}"
        hooks_replace(runs[1])
        dropout(runs[-1])
        for norm in ("pre", "post"):
            plain_torch(train(norm, f"kind=encoder_decoder output.per=next heads=4 layers=2 norm={norm}"))
        print(f"torch_modules_test: ok, values of {len(runs)} models differ by at most {worst:.1e}")


if __name__ == "__main__":
    main()
