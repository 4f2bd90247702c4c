"""A pre-norm encoder with sinusoidal positions in plain NumPy, float64, one sequence at a time: no padding, no batches."""

import json
import math

import numpy


def load(path):
    """The tensors of a safetensors file."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    types = {"F32": numpy.float32, "F64": numpy.float64}
    return {name: numpy.frombuffer(data[end:][slice(*entry["data_offsets"])], types[entry["dtype"]])
            .reshape(entry["shape"]).astype(float)
            for name, entry in json.loads(data[8:end]).items()
            if name != "__metadata__" and not name.startswith("optimizer.")}


def norm(x, weights, name):
    centered = x - x.mean(1, keepdims=True)
    scaled = centered / numpy.sqrt((centered**2).mean(1, keepdims=True) + 1e-5)
    return scaled * weights[name + ".weight"] + weights[name + ".bias"]


def linear(x, weights, name, weight=".weight", bias=".bias"):
    return x @ weights[name + weight].T + weights[name + bias]


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - numpy.log(numpy.exp(shifted).sum(-1, keepdims=True))


class Pass:
    """Log-probabilities, attention (L, H, T, T), head outputs (L, H, T, D / H), and log-probabilities after each layer.
    `replaced` maps (layer, head) to the output in place of the head's own."""

    def __init__(self, weights, tokens, heads, replaced={}):
        width, length = weights["token_embedding.weight"].shape[1], len(tokens)
        angles = numpy.arange(length)[:, None] / 10000 ** (numpy.arange(0, width, 2) / width)
        x = weights["token_embedding.weight"][tokens]
        x = x + numpy.stack([numpy.sin(angles), numpy.cos(angles)], 2).reshape(length, -1)[:, :width]
        self.attention, self.outputs, self.lens = [], [], []

        def read():
            self.lens.append(log_softmax(linear(norm(x, weights, "encoder.norm"), weights, "output")))

        read()
        layer = 0
        while (name := f"encoder.layers.{layer}") + ".linear1.weight" in weights:
            projected = linear(norm(x, weights, name + ".norm1"), weights, name + ".self_attn.in_proj", "_weight", "_bias")
            q, k, v = projected.reshape(length, 3, heads, -1).transpose(1, 2, 0, 3)
            attention = numpy.exp(log_softmax(q @ k.transpose(0, 2, 1) / numpy.sqrt(q.shape[2])))
            outputs = attention @ v
            self.attention.append(attention)
            self.outputs.append(outputs.copy())
            for head in range(heads):
                if (layer, head) in replaced:
                    outputs[head] = replaced[layer, head]
            x = x + linear(outputs.transpose(1, 0, 2).reshape(length, -1), weights, name + ".self_attn.out_proj")
            hidden = numpy.maximum(linear(norm(x, weights, name + ".norm2"), weights, name + ".linear1"), 0)
            x = x + linear(hidden, weights, name + ".linear2")
            read()
            layer += 1
        self.log_probabilities = self.lens[-1]


class Results:
    """Sums of each sequence over its labels, as arrays: `loss` in nats, `right` answers, `labels`."""

    def __init__(self, log_probabilities, targets):
        self.labels = numpy.array([len(target) for target in targets], dtype=float)
        self.loss = numpy.array([-p[range(len(t)), t].sum() for p, t in zip(log_probabilities, targets)])
        self.right = numpy.array([(p.argmax(1) == t).sum() for p, t in zip(log_probabilities, targets)], dtype=float)

    def only(self, chosen):
        part = object.__new__(Results)
        part.labels, part.loss, part.right = self.labels[chosen], self.loss[chosen], self.right[chosen]
        return part


def ratio(parts, labels):
    """The ratio of sums and its standard error, of sequences that were drawn at random; None of fewer than two."""
    mean, n = parts.sum() / labels.sum(), len(labels)
    error = numpy.sqrt(((parts - mean * labels) ** 2).sum() * n / (n - 1)) / labels.sum() if n > 1 else None
    return mean, error


def change(changes, labels):
    """The ratio of sums, its 95 % confidence interval after Hall's transformation with Student's t by Wallace, and p."""
    n, (mean, error) = len(labels), ratio(changes, labels)
    if error == 0:
        return mean, [mean, mean], float(mean == 0)
    centered = (changes - mean * labels) * n / labels.sum()
    deviation = centered.std(ddof=1)
    a = ((centered / deviation) ** 3).sum() * n / ((n - 1) * (n - 2)) / math.sqrt(n)
    wallace = (8 * (n - 1) + 1) / (8 * (n - 1) + 3)

    def end(z):
        t = math.copysign(math.sqrt((n - 1) * math.expm1((z / wallace) ** 2 / (n - 1))), z)
        g = t - a / 6
        return mean - error * (g if abs(a) < 1e-6 else 3 / a * (numpy.cbrt(1 + a * g) - 1))

    t = mean / error
    g = t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6
    z = wallace * math.sqrt((n - 1) * math.log1p(g**2 / (n - 1)))
    return mean, [end(1.959963984540054), end(-1.959963984540054)], math.erfc(abs(z) / math.sqrt(2))


def effect(before, after):
    """The change from results to others of the same sequences, as the JSON states it."""
    loss, right = change(after.loss - before.loss, before.labels), change(after.right - before.right, before.labels)
    return {"loss_change": loss[0], "interval": loss[1], "p": loss[2], "accuracy_change": right[0],
            "accuracy_interval": right[1], "accuracy_p": right[2], "sequences": len(before.labels), "labels": before.labels.sum()}


def scores(maps, at=None):
    """Value, chance level and number of queries of the scores of a head, from its map of each sequence. `at`: the k of the
    scores with a best k; without, it is searched."""
    found = {name: [] for name in ("entropy", "distance", "self", "first", "previous_token", "mirror")}
    offsets, positions, longest = {}, {}, max(map(len, maps))
    for a in maps:
        length = len(a)
        for i, row in enumerate(a):
            if length > 1:
                found["entropy"].append((-(row * numpy.log(row)).sum() / math.log(length), 1))
            away = abs(numpy.arange(length) - i)
            found["distance"].append(((row * away).sum(), away.mean()))
            found["self"].append((row[i], 1 / length))
            found["first"].append((row[0], 1 / length))
            found["mirror"].append((row[length - 1 - i], 1 / length))
            if i > 0:
                found["previous_token"].append((row[i - 1], 1 / length))
            for j in range(length):
                offsets.setdefault(j - i, []).append((row[j], 1 / length))
            for k in range(longest):  # a query without the position has no weight on it
                positions.setdefault(k, []).append((row[k], 1 / length) if k < length else (0, 0))
    mean = {name: (*numpy.mean(values, 0), len(values)) for name, values in found.items()}
    for name, of in (("offset", offsets), ("absolute_position", positions)):
        means = {k: (*numpy.mean(values, 0), len(values)) for k, values in of.items()}
        enough = [k for k in sorted(means) if name != "offset" or 20 * means[k][2] >= 9 * mean["self"][2]]
        mean[name] = means[at[name]] if at else max((means[k] for k in enough), key=lambda m: m[0] - m[1])
    return mean
