"""Reference of the algorithm of Karpathy's microgpt, written out in PyTorch with double precision.

Source: A. Karpathy, "microgpt" (2026), http://karpathy.github.io/2026/02/12/microgpt/. With a row for each
position, and without biases or a final norm:
    x = norm(wte[tokens] + wpe);   x = x + attention(norm(x)) wo';   x = x + relu(norm(x) fc1') fc2'
    logits = x head';   norm(x) = x / sqrt(mean(x^2) + 1e-5)
    attention(y)_t = sum_(s <= t) softmax_s(q_t k_s / sqrt(head size)) v_s in each head;   q = y wq', ...
All weights start normal with standard deviation 0.08. A step takes one document, BOS tokens BOS, cut to 16
predictions; its loss is their mean cross entropy in nats. Adam, for step t = 0, 1, ... of T:
    m = b1 m + (1 - b1) g;   v = b2 v + (1 - b2) g^2;
    w = w - lr (1 - t / T) (m / (1 - b1^(t+1))) / (sqrt(v / (1 - b2^(t+1))) + eps)
Random numbers are not microgpt's, so runs agree with it only in distribution.
"""

import argparse
import pathlib
import random
import statistics

import torch

WIDTH, HEADS, BLOCK, STD = 16, 4, 16, 0.08
RATE, BETA1, BETA2, EPS = 0.01, 0.85, 0.99, 1e-8


def initial_weights(vocabulary, generator):
    """All parameters by name, as matrices of (outputs, inputs)."""
    shapes = {"wte": (vocabulary, WIDTH), "wpe": (BLOCK, WIDTH), "head": (vocabulary, WIDTH),
              "wq": (WIDTH, WIDTH), "wk": (WIDTH, WIDTH), "wv": (WIDTH, WIDTH), "wo": (WIDTH, WIDTH),
              "fc1": (4 * WIDTH, WIDTH), "fc2": (WIDTH, 4 * WIDTH)}
    return {name: (STD * torch.randn(shape, generator=generator, dtype=torch.float64)).requires_grad_()
            for name, shape in shapes.items()}


def norm(x):
    """RMSNorm without weights."""
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)


def logits_of(w, tokens):
    """The logits (T, vocabulary) that follow each of T tokens."""
    length = len(tokens)
    x = norm(w["wte"][tokens] + w["wpe"][:length])
    y = norm(x)
    q, k, v = ((y @ w[name].T).view(length, HEADS, -1).transpose(0, 1) for name in ("wq", "wk", "wv"))
    scores = q @ k.transpose(1, 2) / (WIDTH // HEADS) ** 0.5
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    z = torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ v
    x = x + z.transpose(0, 1).reshape(length, WIDTH) @ w["wo"].T
    x = x + torch.relu(norm(x) @ w["fc1"].T) @ w["fc2"].T
    return x @ w["head"].T


def loss_of(w, document):
    """The mean cross entropy of the tokens after the first, of at most BLOCK of them."""
    tokens = torch.tensor(document[:BLOCK + 1])
    logs = torch.log_softmax(logits_of(w, tokens[:-1]), -1)
    return -logs[torch.arange(len(tokens) - 1), tokens[1:]].mean()


def update(weights, gradients, m, v, t, steps):
    """Changes weights and moments by step t of Adam."""
    with torch.no_grad():
        for i, g in enumerate(gradients):
            m[i] = BETA1 * m[i] + (1 - BETA1) * g
            v[i] = BETA2 * v[i] + (1 - BETA2) * g * g
            mean, square = m[i] / (1 - BETA1 ** (t + 1)), v[i] / (1 - BETA2 ** (t + 1))
            weights[i] -= RATE * (1 - t / steps) * mean / (torch.sqrt(square) + EPS)


def train(documents, vocabulary, seed, steps):
    """Trains on shuffled documents; returns the losses of the steps (before updates) and the weights."""
    documents = list(documents)
    random.Random(seed).shuffle(documents)
    w = initial_weights(vocabulary, torch.Generator().manual_seed(seed))
    weights = list(w.values())
    m, v = ([torch.zeros_like(p) for p in weights] for _ in range(2))
    losses = []
    for t in range(steps):
        loss = loss_of(w, documents[t % len(documents)])
        losses.append(loss.item())
        update(weights, torch.autograd.grad(loss, weights), m, v, t, steps)
    return losses, w


def read(path):
    """Documents (stripped lines, but blank ones) as ids between two BOS, the last id; the vocabulary size."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    characters = sorted(set("".join(lines)))
    ids, bos = {c: i for i, c in enumerate(characters)}, len(characters)
    return [[bos] + [ids[c] for c in line] + [bos] for line in lines], bos + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", required=True, help="text, UTF-8, one document a line")
    parser.add_argument("--orders", type=int, default=1, help="runs, of seeds 0, 1, ... (default 1)")
    parser.add_argument("--steps", type=int, default=1000, help="steps of one document (default 1000)")
    args = parser.parse_args()
    if args.orders < 1 or args.steps < 1:
        parser.error("--orders and --steps must be at least 1")
    torch.set_num_threads(1)
    documents, vocabulary = read(args.data)
    if not documents:
        raise SystemExit(f"{args.data}: no documents")
    means = []
    for seed in range(args.orders):
        losses, w = train(documents, vocabulary, seed, args.steps)
        means.append(statistics.fmean(losses[-100:]))
        print(f"order {seed}: {means[-1]:.6f}", flush=True)
    deviation = statistics.stdev(means) if len(means) > 1 else 0.0
    print(f"mean {statistics.fmean(means):.6f}  standard deviation {deviation:.6f} (n - 1)")
    print(f"parameters {sum(p.numel() for p in w.values())}")


if __name__ == "__main__":
    main()
