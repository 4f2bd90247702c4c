#!/usr/bin/env python3
"""Writes the reference values of tests/fixtures: PyTorch in float64, as small safetensors files.

Needs PyTorch and NumPy (Debian and Ubuntu: apt-get install python3-torch, then run with /usr/bin/python3).
tests/fixtures/README.md says what each file holds. Every file draws from its own generator, seeded by the
file's name, so that adding or changing one leaves the others as they are.

B batch, T time, C channels, H heads, F hidden width of the feed-forward, V vocabulary.
"""

import argparse
import json
import math
import pathlib
import struct
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

IGNORED = -1
STEPS = 10
WARMUP = 3


class Fixture:
    """One file to be: named tensors, metadata, and the random numbers they are made of."""

    def __init__(self, name, **metadata):
        self.name = name
        self.metadata = {key: str(value) for key, value in metadata.items()}
        self.tensors = {}
        self.generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.generator)

    def integers(self, high, *shape):
        return torch.randint(high, shape, generator=self.generator)

    def labels(self, vocabulary, *shape):
        """Random labels, about a quarter of them ignored."""
        ignored = torch.rand(*shape, generator=self.generator) < 0.25
        return self.integers(vocabulary, *shape).masked_fill(ignored, IGNORED)

    def randomise(self, module):
        """Every parameter random, biases and norms too: a default of 0 or 1 would hide mistakes."""
        for name, parameter in module.named_parameters():
            is_norm_weight = parameter.dim() == 1 and name.endswith("weight")
            parameter.data = 0.3 * self.normal(*parameter.shape) + (1.0 if is_norm_weight else 0.0)

    def add(self, tensors, prefix=""):
        for name, tensor in tensors.items():
            self.tensors[prefix + name] = tensor.detach().clone()

    def add_with_gradients(self, leaves, output_name, output, cotangent=None):
        """Stores the leaves, the output, its cotangent, and the gradient of sum(cotangent * output)."""
        if cotangent is None:
            cotangent = self.normal(*output.shape)
        gradients = torch.autograd.grad(output, list(leaves.values()), cotangent)
        for name, gradient in zip(leaves, gradients):
            assert gradient.abs().max() > 1e-4, f"{self.name}: d_{name} is vacuous"
        self.add(leaves)
        self.add({output_name: output, f"d_{output_name}": cotangent})
        self.add(dict(zip(leaves, gradients)), prefix="d_")

    def write(self, directory):
        header = {"__metadata__": self.metadata} if self.metadata else {}
        data = b""
        for name, tensor in self.tensors.items():
            real = tensor.is_floating_point()
            array = tensor.contiguous().numpy().astype("<f8" if real else "<i8")
            header[name] = {"dtype": "F64" if real else "I64", "shape": list(tensor.shape),
                            "data_offsets": [len(data), len(data) + array.nbytes]}
            data += array.tobytes()
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        (directory / f"{self.name}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def leaf(tensor):
    return tensor.requires_grad_(True)


def hidden_pairs(mask, batch, time):
    """True where query t of sequence b must not see key s, as ((B, T, S), lengths or None)."""
    hidden = torch.zeros(batch, time, time, dtype=torch.bool)
    lengths = None
    if "causal" in mask:
        hidden |= torch.ones(time, time).triu(1).bool()
    if "padding" in mask:
        lengths = torch.tensor([5, 3, 1])
        hidden |= (torch.arange(time) >= lengths[:, None])[:, None, :]
    return hidden, lengths


def attention(mask):
    batch, time, heads, key_width, value_width = 3, 5, 2, 3, 4
    fixture = Fixture(f"attention_{mask}", heads=heads, causal=int("causal" in mask))
    leaves = {"q": leaf(fixture.normal(batch, time, heads * key_width)),
              "k": leaf(fixture.normal(batch, time, heads * key_width)),
              "v": leaf(fixture.normal(batch, time, heads * value_width))}
    hidden, lengths = hidden_pairs(mask, batch, time)

    q, k, v = (x.view(batch, time, heads, -1).transpose(1, 2) for x in leaves.values())
    scores = (q @ k.transpose(-1, -2) / math.sqrt(key_width)).masked_fill(hidden[:, None], -math.inf)
    weights = F.softmax(scores, dim=-1)
    out = (weights @ v).transpose(1, 2).reshape(batch, time, -1)

    fixture.add_with_gradients(leaves, "out", out)
    fixture.add({"weights": weights})
    if lengths is not None:
        fixture.add({"lengths": lengths})
    return fixture


def mha(mask):
    batch, time, channels, heads = 3, 5, 12, 3
    fixture = Fixture(f"mha_{mask}", heads=heads, causal=int("causal" in mask))
    module = nn.MultiheadAttention(channels, heads, batch_first=True)
    fixture.randomise(module)
    x = leaf(fixture.normal(batch, time, channels))
    hidden, lengths = hidden_pairs(mask, batch, time)
    out, weights = module(x, x, x, attn_mask=hidden.repeat_interleave(heads, dim=0),
                          average_attn_weights=False)

    fixture.add_with_gradients({"x": x, **dict(module.named_parameters())}, "out", out)
    fixture.add({"weights": weights})
    if lengths is not None:
        fixture.add({"lengths": lengths})
    return fixture


def convolution(kind):
    """Centred: as many positions before as after; causal: the window ends at the position."""
    batch, time, channels, window = 3, 5, 4, 3
    fixture = Fixture(f"convolution_{kind}", window=window, causal=int(kind == "causal"))
    module = nn.Conv1d(channels, channels, window)
    fixture.randomise(module)
    x = leaf(fixture.normal(batch, time, channels))
    counted = x
    if kind == "padding":
        lengths = torch.tensor([5, 3, 1])
        counted = x * (torch.arange(time) < lengths[:, None])[:, :, None]
        fixture.add({"lengths": lengths})
    before = window - 1 if kind == "causal" else window // 2
    y = module(F.pad(counted.transpose(1, 2), (before, window - 1 - before))).transpose(1, 2)
    fixture.add_with_gradients({"x": x, **dict(module.named_parameters())}, "out", y)
    return fixture


def attend(q, k, v, scale, hidden=None):
    """Of heads (B, H, T, D); k and v may have fewer heads, which are then shared."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    scores = scale * (q @ k.transpose(-1, -2))
    if hidden is not None:
        scores = scores.masked_fill(hidden[:, None], -math.inf)
    weights = F.softmax(scores, dim=-1)
    return weights, weights @ v


def heads(name, count, kv_heads, key_width, value_width, tied=False, summed=False, score="scaled_dot"):
    """Self-attention whose heads share keys and values, have widths of their own, are tied or added up."""
    batch, time, channels = 3, 5, 12
    fixture = Fixture(name, heads=count, kv_heads=kv_heads, key_width=key_width, value_width=value_width,
                      tied=int(tied), summed=int(summed), score=score)
    sizes = [count * key_width, 0 if tied else kv_heads * key_width, kv_heads * value_width]
    leaves = {"x": fixture.normal(batch, time, channels),
              "in_proj_weight": 0.5 * fixture.normal(sum(sizes), channels),
              "in_proj_bias": 0.5 * fixture.normal(sum(sizes))}
    outs = [f"out_proj.{h}.weight" for h in range(count)] if summed else ["out_proj.weight"]
    for out in outs:
        leaves[out] = 0.5 * fixture.normal(channels, count * value_width // len(outs))
    leaves["out_proj.bias"] = 0.5 * fixture.normal(channels)
    leaves = {key: leaf(tensor) for key, tensor in leaves.items()}

    projected = F.linear(leaves["x"], leaves["in_proj_weight"], leaves["in_proj_bias"])
    q, k, v = projected.split(sizes, dim=-1)
    split = lambda x, width: x.view(batch, time, -1, width).transpose(1, 2)
    q, v = split(q, key_width), split(v, value_width)
    hidden, lengths = hidden_pairs("causal_padding", batch, time)
    weights, z = attend(q, q if tied else split(k, key_width), v,
                        1 / math.sqrt(key_width) if score == "scaled_dot" else 1.0, hidden)
    if summed:
        out = leaves["out_proj.bias"] + sum(F.linear(z[:, h], leaves[name]) for h, name in enumerate(outs))
    else:
        out = F.linear(z.transpose(1, 2).flatten(2), leaves["out_proj.weight"], leaves["out_proj.bias"])
    fixture.add_with_gradients(leaves, "out", out)
    fixture.add({"weights": weights, "lengths": lengths})
    return fixture


def encoder_layer(norm, activation):
    fixture = Fixture(f"encoder_layer_{norm}", heads=3, norm=norm, activation=activation, norm_eps=1e-5)
    layer = nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, activation=activation, batch_first=True,
                                       norm_first=norm == "pre")
    fixture.randomise(layer)
    x = leaf(fixture.normal(3, 5, 12))
    fixture.add_with_gradients({"x": x, **dict(layer.named_parameters())}, "out", layer(x))
    return fixture


def head_linear():
    heads, depth, width = 3, 4, 5
    fixture = Fixture("head_linear", heads=heads)
    leaves = {"x": leaf(fixture.normal(2, 6, heads * depth)),
              "weight": leaf(fixture.normal(heads, depth, width))}
    y = torch.einsum("bthd,hde->bthe", leaves["x"].unflatten(-1, (heads, depth)), leaves["weight"])
    fixture.add_with_gradients(leaves, "y", y.flatten(-2))
    return fixture


def additive_score():
    """Bahdanau et al. 2015, appendix A.1.2, of every query and key; NumPy must agree, element by element."""
    batch, queries, keys, heads, kv_heads, depth = 2, 3, 5, 4, 2, 3
    fixture = Fixture("additive_score", heads=heads, kv_heads=kv_heads)
    leaves = {"q": leaf(fixture.normal(batch, queries, heads * depth)),
              "k": leaf(fixture.normal(batch, keys, kv_heads * depth)),
              "weight": leaf(fixture.normal(heads, depth))}
    q = leaves["q"].unflatten(-1, (heads, depth)).transpose(1, 2)
    k = leaves["k"].unflatten(-1, (kv_heads, depth)).transpose(1, 2)
    k = k.repeat_interleave(heads // kv_heads, dim=1)
    tangents = torch.tanh(q[:, :, :, None] + k[:, :, None])
    scores = (leaves["weight"][:, None, None] * tangents).sum(-1)
    for b, h, i, j in np.ndindex(*scores.shape):
        key = leaves["k"][b, j].detach().numpy()[h * kv_heads // heads * depth:][:depth]
        query = leaves["q"][b, i].detach().numpy()[h * depth:][:depth]
        score = leaves["weight"][h].detach().numpy() @ np.tanh(query + key)
        assert abs(score - scores[b, h, i, j].item()) < 1e-12
    fixture.add_with_gradients(leaves, "scores", scores)
    return fixture


def rotary():
    """Su et al. 2021, equation 13: pairs of columns as complex numbers, times e^(i m theta)."""
    first, heads, depth, first_position, time = 3, 2, 6, 4, 5
    count = heads * depth
    fixture = Fixture("rotary", first=first, count=count, depth=depth, first_position=first_position)
    x = leaf(fixture.normal(2, time, first + count + 2))
    theta = 10000.0 ** (-2 * torch.arange(depth // 2) / depth)
    angle = torch.outer(torch.arange(first_position, first_position + time).double(), theta)
    turning = x[..., first:first + count].contiguous()
    pairs = torch.view_as_complex(turning.unflatten(-1, (heads, depth // 2, 2)))
    turned = torch.view_as_real(pairs * torch.exp(1j * angle)[:, None]).flatten(-3)
    y = torch.cat([x[..., :first], turned, x[..., first + count:]], dim=-1)
    fixture.add_with_gradients({"x": x}, "y", y)
    return fixture


def layer_norm():
    fixture = Fixture("layer_norm", eps=1e-5)
    leaves = {"x": leaf(fixture.normal(4, 5, 7)), "weight": leaf(1 + 0.3 * fixture.normal(7)),
              "bias": leaf(0.3 * fixture.normal(7))}
    y = F.layer_norm(leaves["x"], (7,), leaves["weight"], leaves["bias"], eps=1e-5)
    fixture.add_with_gradients(leaves, "y", y)
    return fixture


def rms_norm():
    """torch.nn.RMSNorm, in words that older versions know too."""
    fixture = Fixture("rms_norm", eps=1e-5)
    leaves = {"x": leaf(fixture.normal(4, 5, 7)), "weight": leaf(1 + 0.3 * fixture.normal(7))}
    x = leaves["x"]
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * leaves["weight"]
    fixture.add_with_gradients(leaves, "y", y)
    return fixture


def silu():
    fixture = Fixture("silu")
    x = leaf(torch.cat([torch.linspace(-6, 6, 49), 2 * fixture.normal(31)]))
    fixture.add_with_gradients({"x": x}, "y", F.silu(x))
    return fixture


def gelu(form):
    fixture = Fixture(f"gelu_{form}")
    x = leaf(torch.cat([torch.linspace(-6, 6, 49), 2 * fixture.normal(31)]))
    fixture.add_with_gradients({"x": x}, "y", F.gelu(x, approximate="none" if form == "erf" else "tanh"))
    return fixture


def softmax():
    fixture = Fixture("softmax")
    x = leaf(2 * fixture.normal(6, 7))
    fixture.add_with_gradients({"x": x}, "y", F.softmax(x, dim=-1))
    return fixture


def cross_entropy(name, label_smoothing):
    fixture = Fixture(name, label_smoothing=label_smoothing, ignored_label=IGNORED)
    logits, labels = leaf(2 * fixture.normal(3, 5, 7)), fixture.labels(7, 3, 5)
    loss = F.cross_entropy(logits.view(-1, 7), labels.flatten(), ignore_index=IGNORED,
                           label_smoothing=label_smoothing)
    fixture.add_with_gradients({"logits": logits}, "loss", loss.view(1), cotangent=torch.tensor([1.7]))
    fixture.add({"labels": labels})
    return fixture


def sinusoidal(time, channels):
    """pe[t, 2i] = sin(t / 10000^(2i/C)), pe[t, 2i+1] = cos(same): Vaswani et al. 2017, section 3.5."""
    angle = torch.arange(time)[:, None] / 10000 ** (torch.arange(0, channels, 2) / channels)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).view(time, channels)


class Model(nn.Module):
    """pre: GELU, sinusoidal positions, linear output; post: ReLU, learned positions, two-layer output net."""

    V, T, C, H, F = 7, 6, 12, 3, 20

    def __init__(self, norm):
        super().__init__()
        self.token_embedding = nn.Embedding(self.V, self.C)
        pre = norm == "pre"
        if pre:
            self.output = nn.Linear(self.C, self.V)
        else:
            self.position_embedding = nn.Embedding(self.T, self.C)
            self.output = nn.Sequential(nn.Linear(self.C, 8), nn.LayerNorm(8), nn.ReLU(),
                                        nn.Linear(8, self.V))
        layer = nn.TransformerEncoderLayer(self.C, self.H, self.F, dropout=0.0, norm_first=pre,
                                           activation="gelu" if pre else "relu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2 if pre else 1, nn.LayerNorm(self.C) if pre else None,
                                             enable_nested_tensor=False)
        self.pre = pre

    def forward(self, tokens):
        positions = sinusoidal(self.T, self.C) if self.pre else self.position_embedding.weight
        return self.output(self.encoder(self.token_embedding(tokens) + positions))


def lr_factor(t):
    return 0.5 * (1 + math.cos(math.pi * t / STEPS)) * min(1.0, t / WARMUP)


def training(name, norm, make_optimizer, lr, weight_decay, clip_norm, **settings):
    """Ten steps of a whole model; see README.md for what is stored."""
    fixture = Fixture(name, norm=norm, heads=Model.H, norm_eps=1e-5, lr=lr, weight_decay=weight_decay,
                      clip_norm=clip_norm, warmup=WARMUP, ignored_label=IGNORED, **settings)
    model = Model(norm)
    fixture.randomise(model)
    named = dict(model.named_parameters())
    fixture.add(named, prefix="initial.")
    tokens = fixture.integers(Model.V, STEPS, 4, Model.T)
    labels = fixture.labels(Model.V, STEPS, 4, Model.T)
    optimizer = make_optimizer([
        {"params": [p for p in named.values() if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in named.values() if p.dim() < 2], "weight_decay": 0.0}], lr=lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_factor)

    losses, norms, rates = [], [], []
    for step in range(STEPS):
        logits = model(tokens[step])
        loss = F.cross_entropy(logits.view(-1, Model.V), labels[step].flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            fixture.add({"logits": logits}, prefix="first.")
            fixture.add({key: p.grad for key, p in named.items()}, prefix="first.grad.")
        losses.append(loss.item())
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), clip_norm).item())
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()

    fixture.add({"tokens": tokens, "labels": labels, "losses": torch.tensor(losses),
                 "grad_norms": torch.tensor(norms), "lr": torch.tensor(rates)})
    fixture.add(named, prefix="final.")
    return fixture


def adamw_model():
    beta1, beta2, eps = 0.9, 0.98, 1e-8
    return training("adamw_model", "pre",
                    lambda groups, lr: torch.optim.AdamW(groups, lr, (beta1, beta2), eps),
                    lr=1e-2, weight_decay=0.1, clip_norm=0.5, beta1=beta1, beta2=beta2, eps=eps)


def adam_model():
    beta1, beta2, eps = 0.9, 0.98, 1e-8
    return training("adam_model", "post",
                    lambda groups, lr: torch.optim.Adam(groups, lr, (beta1, beta2), eps),
                    lr=1e-2, weight_decay=0.05, clip_norm=1.0, beta1=beta1, beta2=beta2, eps=eps)


def sgd_model():
    momentum = 0.9
    return training("sgd_model", "post",
                    lambda groups, lr: torch.optim.SGD(groups, lr, momentum),
                    lr=1e-1, weight_decay=0.01, clip_norm=1.0, momentum=momentum)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="default: tests/fixtures",
                        default=pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)  # a fixed order of summation, so that two runs give the same bytes
    masks = ["none", "causal", "padding", "causal_padding"]
    fixtures = [*map(attention, masks), *map(mha, masks), heads("heads_grouped", 4, 2, 3, 5),
                heads("heads_one_key", 3, 1, 5, 4, summed=True),
                heads("heads_tied", 2, 2, 6, 3, tied=True, score="dot"),
                *map(convolution, ["centred", "causal", "padding"]), encoder_layer("pre", "gelu"),
                encoder_layer("post", "relu"), head_linear(), additive_score(), rotary(), layer_norm(),
                rms_norm(), silu(), gelu("erf"), gelu("tanh"), softmax(),
                cross_entropy("cross_entropy", 0.0), cross_entropy("cross_entropy_smoothed", 0.1),
                adamw_model(), adam_model(), sgd_model()]
    for fixture in fixtures:
        fixture.write(out)
    print(f"{len(fixtures)} files written to {out} by PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
