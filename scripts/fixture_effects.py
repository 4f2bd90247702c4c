"""Reference values of ablating sets of heads, with their confidence intervals."""

import math

import torch
import torch.nn.functional as F

from fixture_file import Fixture
from fixture_models import Model, sinusoidal

SETS = [[(0, 0)], [(1, 2)], [(0, 1), (0, 2)], [(0, 0), (1, 1)], [(1, 0), (1, 2)], [(0, 0), (0, 2), (1, 1), (1, 2)]]


def logits_of(model, tokens, replace):
    """The pre-norm model written out; replace(layer, z) returns the outputs (N, H, T, D) of a layer's heads."""
    x = model.token_embedding(tokens) + sinusoidal(model.T, model.C)
    for number, layer in enumerate(model.encoder.layers):
        attention, y = layer.self_attn, layer.norm1(x)
        q, k, v = (part.unflatten(-1, (model.H, -1)).transpose(1, 2)
                   for part in F.linear(y, attention.in_proj_weight, attention.in_proj_bias).chunk(3, -1))
        z = replace(number, F.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v)
        x = x + attention.out_proj(z.transpose(1, 2).flatten(2))
        x = x + layer.linear2(F.gelu(layer.linear1(layer.norm2(x))))
    return model.output(model.encoder.norm(x))


def interval(changes, labels):
    """Mean, 95 % interval and p-value: Hall 1992 with Wallace's t of 1959, for a ratio of sums."""
    n, mean = len(changes), changes.sum() / labels.sum()
    influence = (changes - mean * labels) / labels.mean()
    sd = influence.std()
    a = n * influence.pow(3).sum() / ((n - 1) * (n - 2) * sd ** 3) / math.sqrt(n)
    correction = (8 * (n - 1) + 3) / (8 * (n - 1) + 1)
    t = math.sqrt((n - 1) * (math.exp((1.959963984540054 * correction) ** 2 / (n - 1)) - 1))
    end = lambda g: 3 / a * (torch.sign(1 + a * (g - a / 6)) * (1 + a * (g - a / 6)).abs() ** (1 / 3) - 1)
    error = sd / math.sqrt(n)
    x = mean / error
    g = x + a * x ** 2 / 3 + a ** 2 * x ** 3 / 27 + a / 6
    z = math.sqrt((n - 1) * math.log(1 + g ** 2 / (n - 1))) / correction
    return [mean, mean - error * end(t), mean - error * end(-t), torch.tensor(math.erfc(z / math.sqrt(2)))]


def head_ablations():
    """A model of fixture_models; for each set and kind, (mean, low, high, p) of the loss, then of the accuracy."""
    count = 60
    fixture = Fixture("head_ablations", heads=Model.H, sets=";".join(
        ",".join(f"{layer}.{head}" for layer, head in heads) for heads in SETS))
    model = Model("pre")
    fixture.randomise(model)
    tokens = fixture.integers(Model.V, count, Model.T)
    outputs = []
    with torch.no_grad():
        model.output.weight *= 3  # answers that differ between tokens
        model.output.bias -= model(tokens).mean((0, 1))
        logits = logits_of(model, tokens, lambda layer, z: outputs.append(z) or z)
        assert torch.allclose(logits, model(tokens))
        wrong = torch.rand(count, Model.T, generator=fixture.generator) < 0.3
        labels = torch.where(wrong, fixture.integers(Model.V, count, Model.T), logits.argmax(-1))

        def result(logits):
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
            return loss.view(count, Model.T).sum(1), (logits.argmax(-1) == labels).sum(1).double()

        def ablated(heads, substitute):
            def replace(layer, z):
                z = z.clone()
                for _, head in (h for h in heads if h[0] == layer):
                    z[:, head] = substitute(layer)[:, head]
                return z
            return result(logits_of(model, tokens, replace))

        before = result(logits)
        sizes = torch.full((count,), float(Model.T))
        kinds = {"zero": lambda layer: torch.zeros_like(outputs[layer]),
                 "mean": lambda layer: outputs[layer].mean(0, keepdim=True)}
        for name, substitute in kinds.items():
            rows = []
            for heads in SETS:
                after = ablated(heads, substitute)
                rows.append(torch.stack([torch.stack(interval(a - b, sizes)) for a, b in zip(after, before)]))
            fixture.add({name: torch.stack(rows)})
    fixture.add(dict(model.named_parameters()))
    fixture.add({"tokens": tokens, "labels": labels, "losses": before[0]})
    return fixture
