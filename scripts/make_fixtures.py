#!/usr/bin/env python3
"""Writes the reference values of tests/fixtures: PyTorch in float64, as small safetensors files.

Needs PyTorch and NumPy (Debian and Ubuntu: apt-get install python3-torch, then run with /usr/bin/python3).
tests/fixtures/README.md says what each file holds. Every file draws from its own generator, seeded by the
file's name, so that adding or changing one leaves the others as they are.

B batch, T time, C channels, H heads, F hidden width of the feed-forward, V vocabulary.
"""

import argparse
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from fixture_effects import head_ablations
from fixture_file import IGNORED, Fixture, hidden_pairs, leaf
from fixture_heads import cross, gated_layer, heads
from fixture_models import adam_model, adamw_model, sgd_model
from fixture_patching import patching
from fixture_recurrent import gru, recurrent


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


class EncoderDecoder(nn.Module):
    """Two layers each, learned positions, a linear output; a final norm where the layers are pre-norm."""

    V, T, S, C, H, F = 7, 5, 6, 8, 2, 12

    def __init__(self, pre):
        super().__init__()
        self.source_token_embedding = nn.Embedding(self.V, self.C)
        self.source_position_embedding = nn.Embedding(self.S, self.C)
        self.token_embedding = nn.Embedding(self.V, self.C)
        self.position_embedding = nn.Embedding(self.T, self.C)
        settings = {"dropout": 0.0, "batch_first": True, "norm_first": pre}
        norm = lambda: nn.LayerNorm(self.C) if pre else None
        encoder_layer = nn.TransformerEncoderLayer(self.C, self.H, self.F, **settings)
        decoder_layer = nn.TransformerDecoderLayer(self.C, self.H, self.F, **settings)
        self.encoder = nn.TransformerEncoder(encoder_layer, 2, norm(), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder_layer, 2, norm())
        self.output = nn.Linear(self.C, self.V)

    def forward(self, sources, hidden, tokens):
        source = self.source_token_embedding(sources) + self.source_position_embedding.weight
        memory = self.encoder(source, src_key_padding_mask=hidden)
        target = self.token_embedding(tokens) + self.position_embedding.weight
        later = torch.ones(self.T, self.T).triu(1).bool()
        return self.output(self.decoder(target, memory, tgt_mask=later, memory_key_padding_mask=hidden))


def encoder_decoder(norm):
    fixture = Fixture(f"encoder_decoder_{norm}", heads=EncoderDecoder.H, norm_eps=1e-5)
    model = EncoderDecoder(norm == "pre")
    fixture.randomise(model)
    sources = fixture.integers(model.V, 3, model.S)
    tokens = fixture.integers(model.V, 3, model.T)
    lengths = torch.tensor([6, 4, 1])
    logits = model(sources, torch.arange(model.S) >= lengths[:, None], tokens)
    fixture.add({"sources": sources, "source_lengths": lengths, "tokens": tokens})
    fixture.add_with_gradients(dict(model.named_parameters()), "logits", logits)
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
                heads("heads_general", 4, 2, 3, 5, score="general"),
                heads("heads_additive", 4, 2, 3, 5, score="additive"),
                heads("heads_rotary", 4, 2, 6, 5, positions="rotary"),
                heads("heads_rotary_halves", 4, 2, 6, 5, positions="rotary_halves"),
                heads("heads_alibi", 3, 3, 4, 4, positions="alibi"),
                heads("heads_alibi_additive", 4, 2, 3, 5, score="additive", positions="alibi"),
                cross("cross"), cross("cross_padding", [6, 2, 1]), gated_layer("pre"), gated_layer("post"),
                *map(convolution, ["centred", "causal", "padding"]), encoder_layer("pre", "gelu"),
                encoder_layer("post", "relu"), encoder_decoder("pre"), encoder_decoder("post"), head_linear(),
                additive_score(), rotary(), layer_norm(),
                rms_norm(), silu(), gelu("erf"), gelu("tanh"), softmax(),
                *(gru(kind, padding) for kind in ("forward", "both") for padding in (False, True)),
                head_ablations(), *map(recurrent, ["none", "additive", "dot", "general", "scaled_dot"]),
                cross_entropy("cross_entropy", 0.0), cross_entropy("cross_entropy_smoothed", 0.1),
                adamw_model(), adam_model(), sgd_model(), patching("pre"), patching("post")]
    for fixture in fixtures:
        fixture.write(out)
    print(f"{len(fixtures)} files written to {out} by PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
