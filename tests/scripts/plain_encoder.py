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
        self.losses = [-p[range(len(t)), t] for p, t in zip(log_probabilities, targets)]
        self.loss = numpy.array([losses.sum() for losses in self.losses])
        self.right = numpy.array([(p.argmax(1) == t).sum() for p, t in zip(log_probabilities, targets)], dtype=float)

    def only(self, chosen):
        part = object.__new__(Results)
        part.labels, part.loss, part.right = self.labels[chosen], self.loss[chosen], self.right[chosen]
        part.losses = [self.losses[i] for i in numpy.arange(len(self.losses))[chosen]]
        return part

    def capped(self, cap):
        return numpy.array([numpy.minimum(losses, cap).sum() for losses in self.losses])


def ratio(parts, labels):
    """The ratio of sums and its standard error, of sequences that were drawn at random; None of fewer than two."""
    mean, n = parts.sum() / labels.sum(), len(labels)
    error = numpy.sqrt(((parts - mean * labels) ** 2).sum() * n / (n - 1)) / labels.sum() if n > 1 else None
    return mean, error


def change(changes, labels):
    """The ratio of sums and its approximate 95 % interval after Hall's transformation with Student's t by Wallace."""
    n, (mean, error) = len(labels), ratio(changes, labels)
    if error == 0:
        return mean, [mean, mean]
    centered = (changes - mean * labels) * n / labels.sum()
    deviation = centered.std(ddof=1)
    a = ((centered / deviation) ** 3).sum() * n / ((n - 1) * (n - 2)) / math.sqrt(n)
    wallace = (8 * (n - 1) + 1) / (8 * (n - 1) + 3)

    def end(z):
        t = math.copysign(math.sqrt((n - 1) * math.expm1((z / wallace) ** 2 / (n - 1))), z)
        g = t - a / 6
        return mean - error * (g if abs(a) < 1e-6 else 3 / a * (numpy.cbrt(1 + a * g) - 1))

    return mean, [end(1.959963984540054), end(-1.959963984540054)]


def bounded(changes, labels, most, bound):
    """The ratio of sums of changes of at most `bound` an answer, its 95 % interval, and p: the Bayesian bootstrap with a
    sequence of `most` answers at the bound, P(sum w (x - t L) + w0 most (b - t) <= 0). That is 1/2 minus an integral of
    the characteristic function along the real line (Gil-Pelaez 1951), here over v = ln u."""
    v = numpy.linspace(-60, 40, 40001)
    u = numpy.exp(v)

    def below(b, t):
        a = numpy.append(changes - t * labels, most * (b - t))
        if (a == 0).all():
            return 0.5
        u_of = u / numpy.abs(a).sum()
        phase = numpy.arctan(numpy.outer(a, u_of)).sum(0)
        size = numpy.exp(-0.5 * numpy.log1p(numpy.outer(a, u_of) ** 2).sum(0))
        return 0.5 - (size * numpy.sin(phase)).sum() * (v[1] - v[0]) / math.pi

    def end(b, share):
        low, high = -bound, bound
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if below(b, middle) < share else (low, middle)
        return (low + high) / 2

    m = (below(-bound, 0) + below(bound, 0)) / 2
    return changes.sum() / labels.sum(), [end(-bound, 0.025), end(bound, 0.975)], 2 * min(m, 1 - m)


def effect(before, after, most, cap):
    """The change from results to others of the same sequences, as the JSON states it; loss is capped at `cap`."""
    loss = change(after.loss - before.loss, before.labels)
    right = bounded(after.right - before.right, before.labels, most, 1)
    capped = bounded(after.capped(cap) - before.capped(cap), before.labels, most, cap)
    return {"loss_change": loss[0], "interval": loss[1], "accuracy_change": right[0], "accuracy_interval": right[1],
            "accuracy_p": right[2], "capped_loss": {"change": capped[0], "interval": capped[1], "p": capped[2]},
            "sequences": len(before.labels), "labels": before.labels.sum()}


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
