"""Reference values of attention that is laid out, scored or placed in other ways, and of gated layers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from fixture_file import Fixture, hidden_pairs, leaf


def rotated(x):
    """Su et al. 2021, of heads (B, H, T, D): columns 2i and 2i+1, as a complex number, times e^(i t theta_i)."""
    time, width = x.shape[-2:]
    theta = 10000 ** (-torch.arange(0, width, 2) / width)
    turn = torch.polar(torch.ones(time, width // 2), torch.arange(time)[:, None] * theta)
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * turn).flatten(-2)


def rotated_halves(x, base):
    """rotate_half of GPT-NeoX and of Hugging Face's LLaMA, of heads (B, H, T, D): x cos + (-x2, x1) sin."""
    time, width = x.shape[-2:]
    angle = torch.outer(torch.arange(time).double(), 1.0 / base ** (torch.arange(0, width, 2) / width))
    angle = torch.cat([angle, angle], dim=-1)
    first, second = x.chunk(2, dim=-1)
    return x * angle.cos() + torch.cat([-second, first], dim=-1) * angle.sin()


def scores_of(kind, q, k, parameter):
    """(B, H, T, S) of heads (B, H, T, D) and (B, H, S, D)."""
    if kind == "additive":
        return ((q[:, :, :, None] + k[:, :, None]).tanh() * parameter[:, None, None]).sum(-1)
    if kind == "general":
        return torch.einsum("bhtd,hde,bhse->bhts", q, parameter, k)
    scores = q @ k.transpose(-1, -2)
    return scores / math.sqrt(q.shape[-1]) if kind == "scaled_dot" else scores


def heads(name, count, kv_heads, key_width, value_width, tied=False, summed=False, score="scaled_dot",
          positions="none"):
    """Self-attention whose heads share keys and values, have widths of their own, are tied or added up."""
    batch, time, channels = 3, 5, 12
    fixture = Fixture(name, heads=count, kv_heads=kv_heads, key_width=key_width, value_width=value_width,
                      tied=int(tied), summed=int(summed), score=score, positions=positions)
    sizes = [count * key_width, 0 if tied else kv_heads * key_width, kv_heads * value_width]
    # The scale of Fixture.randomise: PyTorch's own float32 then stays within half of the bound on 20 seeds.
    leaves = {"x": fixture.normal(batch, time, channels),
              "in_proj_weight": 0.3 * fixture.normal(sum(sizes), channels),
              "in_proj_bias": 0.3 * fixture.normal(sum(sizes))}
    outs = [f"out_proj.{h}.weight" for h in range(count)] if summed else ["out_proj.weight"]
    for out in outs:
        leaves[out] = 0.3 * fixture.normal(channels, count * value_width // len(outs))
    leaves["out_proj.bias"] = 0.3 * fixture.normal(channels)
    if score in ("general", "additive"):
        shape = [count, key_width, key_width] if score == "general" else [count, key_width]
        leaves["score_weight"] = fixture.normal(*shape)
    leaves = {key: leaf(tensor) for key, tensor in leaves.items()}

    projected = F.linear(leaves["x"], leaves["in_proj_weight"], leaves["in_proj_bias"])
    q, k, v = projected.split(sizes, dim=-1)
    split = lambda x, width: x.view(batch, time, -1, width).transpose(1, 2)
    q, v = split(q, key_width), split(v, value_width)
    k = q if tied else split(k, key_width)
    if positions == "rotary":
        q, k = rotated(q), rotated(k)
    if positions == "rotary_halves":
        q, k = rotated_halves(q, 500), rotated_halves(k, 500)
    k, v = (x.repeat_interleave(count // kv_heads, dim=1) for x in (k, v))
    scores = scores_of(score, q, k, leaves.get("score_weight"))
    if positions == "alibi":
        slopes = 2 ** (-8 * (1 + torch.arange(count)) / count)
        steps = torch.arange(time)
        scores = scores - slopes[:, None, None] * (steps[:, None] - steps).abs()
    hidden, lengths = hidden_pairs("causal_padding", batch, time)
    weights = F.softmax(scores.masked_fill(hidden[:, None], -math.inf), dim=-1)
    z = weights @ v
    if summed:
        out = leaves["out_proj.bias"] + sum(F.linear(z[:, h], leaves[name]) for h, name in enumerate(outs))
    else:
        out = F.linear(z.transpose(1, 2).flatten(2), leaves["out_proj.weight"], leaves["out_proj.bias"])
    fixture.add_with_gradients(leaves, "out", out)
    fixture.add({"weights": weights, "lengths": lengths})
    return fixture


def cross(name, lengths=None):
    """nn.MultiheadAttention from 4 positions to 6 others, of which `lengths` count."""
    batch, queries, keys, channels, count = 3, 4, 6, 12, 3
    fixture = Fixture(name, heads=count)
    module = nn.MultiheadAttention(channels, count, batch_first=True)
    fixture.randomise(module)
    x, memory = leaf(fixture.normal(batch, queries, channels)), leaf(fixture.normal(batch, keys, channels))
    hidden = None
    if lengths is not None:
        hidden = torch.arange(keys) >= torch.tensor(lengths)[:, None]
        fixture.add({"lengths": torch.tensor(lengths)})
    out, weights = module(x, memory, memory, key_padding_mask=hidden, average_attn_weights=False)
    fixture.add_with_gradients({"x": x, "memory": memory, **dict(module.named_parameters())}, "out", out)
    fixture.add({"weights": weights})
    return fixture


def gated_layer(norm):
    """An encoder layer with RMS norm (Zhang and Sennrich 2019) and a gated feed-forward net (Shazeer 2020)."""
    channels, count, wide = 12, 3, 20
    fixture = Fixture(f"gated_layer_{norm}", heads=count)
    attention = nn.MultiheadAttention(channels, count, batch_first=True)
    linear1, linear2, gate = nn.Linear(channels, wide), nn.Linear(wide, channels), nn.Linear(channels, wide)
    modules = {"self_attn": attention, "linear1": linear1, "linear2": linear2, "gate": gate}
    for module in modules.values():
        fixture.randomise(module)
    leaves = {"x": leaf(fixture.normal(3, 5, channels))}
    for key, module in modules.items():
        leaves.update({f"{key}.{name}": parameter for name, parameter in module.named_parameters()})
    for key in ("norm1", "norm2"):
        leaves[f"{key}.weight"] = leaf(1 + 0.3 * fixture.normal(channels))

    def normed(x, key):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * leaves[f"{key}.weight"]

    def sublayer(x, key, f):
        return x + f(normed(x, key)) if norm == "pre" else normed(x + f(x), key)

    x = sublayer(leaves["x"], "norm1", lambda y: attention(y, y, y)[0])
    x = sublayer(x, "norm2", lambda y: linear2(F.silu(linear1(y)) * gate(y)))
    fixture.add_with_gradients(leaves, "out", x)
    return fixture
