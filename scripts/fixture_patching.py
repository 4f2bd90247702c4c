"""Path patching, activation patching and logit lens of a two-layer model, for make_fixtures.py."""

import itertools
import math

import torch
import torch.nn.functional as F

from fixture_file import IGNORED, Fixture

V, T, C, H, WIDE, LAYERS, PAIRS = 7, 5, 8, 2, 12, 2, 3


def shapes(pre):
    yield "token_embedding.weight", (V, C)
    yield "position_embedding.weight", (T, C)
    for layer in range(LAYERS):
        for name, shape in {"self_attn.in_proj_weight": (3 * C, C), "self_attn.in_proj_bias": (3 * C,),
                            "self_attn.out_proj.weight": (C, C), "self_attn.out_proj.bias": (C,),
                            "linear1.weight": (WIDE, C), "linear1.bias": (WIDE,),
                            "linear2.weight": (C, WIDE), "linear2.bias": (C,),
                            "norm1.weight": (C,), "norm1.bias": (C,),
                            "norm2.weight": (C,), "norm2.bias": (C,)}.items():
            yield f"encoder.layers.{layer}.{name}", shape
    if pre:
        yield "encoder.norm.weight", (C,)
        yield "encoder.norm.bias", (C,)
    yield "output.weight", (V, C)
    yield "output.bias", (V,)


class Model:
    """Every receiver adds up its own copy of the residual stream, from `contributions` chosen edge by edge."""

    def __init__(self, fixture, pre):
        self.pre = pre
        self.p = {name: 0.6 * fixture.normal(*shape) + (1.0 if "norm" in name and "weight" in name else 0.0)
                  for name, shape in shapes(pre)}

    def norm(self, x, name):
        return F.layer_norm(x, (C,), self.p[f"{name}.weight"], self.p[f"{name}.bias"], eps=1e-5)

    def senders(self, stage):
        """The senders that add to the stream up to a stage, grouped by the norm that follows them."""
        yield ["embedding"], None
        for s in range(1, stage + 1):
            layer = (s - 1) // 2
            name = f"encoder.layers.{layer}."
            yield ([f"{layer}.{h}" for h in range(H)], name + "norm1") if s % 2 else ([f"ffn {layer}"], name + "norm2")

    def stream(self, stage, pick):
        x = 0
        for names, norm in self.senders(stage):
            x = x + sum(pick(name) for name in names)
            if norm and not self.pre:
                x = self.norm(x, norm)
        return x

    def run(self, tokens, replaced=(), others=None, heads=None):
        """Returns logits and what each sender adds, z of each head; `replaced` edges carry what is in `others`;
        `heads`, {(layer, head): (positions, z)}, replaces outputs of heads."""
        add, z = {"embedding": self.p["token_embedding.weight"][tokens] + self.p["position_embedding.weight"]}, {}

        def read(receiver, stage):
            return self.stream(stage, lambda s: others[s] if (s, receiver) in replaced else add[s])

        later = torch.ones(T, T).triu(1).bool()
        for layer in range(LAYERS):
            p = {k: self.p[f"encoder.layers.{layer}.{k}"] for k in
                 ("self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight",
                  "self_attn.out_proj.bias", "linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias")}
            normed = lambda x, n: self.norm(x, f"encoder.layers.{layer}.{n}") if self.pre else x
            for h in range(H):
                qkv = []
                for part, name in enumerate(("query", "key", "value")):
                    rows = slice(part * C + h * C // H, part * C + (h + 1) * C // H)
                    x = normed(read(f"{layer}.{h} {name}", 2 * layer), "norm1")
                    qkv.append(x @ p["self_attn.in_proj_weight"][rows].T + p["self_attn.in_proj_bias"][rows])
                q, k, v = qkv
                scores = (q @ k.transpose(1, 2) / math.sqrt(C // H)).masked_fill(later, -math.inf)
                out = scores.softmax(-1) @ v
                if heads and (layer, h) in heads:
                    positions, other = heads[layer, h]
                    out = out.clone()
                    out[:, positions] = other[:, positions]
                z[layer, h] = out
                columns = slice(h * C // H, (h + 1) * C // H)
                add[f"{layer}.{h}"] = out @ p["self_attn.out_proj.weight"][:, columns].T
                if h == 0:
                    add[f"{layer}.{h}"] = add[f"{layer}.{h}"] + p["self_attn.out_proj.bias"]
            x = normed(read(f"ffn {layer}", 2 * layer + 1), "norm2")
            hidden = F.gelu(x @ p["linear1.weight"].T + p["linear1.bias"])
            add[f"ffn {layer}"] = hidden @ p["linear2.weight"].T + p["linear2.bias"]
        return self.output(read("logits", 2 * LAYERS)), add, z

    def output(self, x):
        x = self.norm(x, "encoder.norm") if self.pre else x
        return x @ self.p["output.weight"].T + self.p["output.bias"]

    def edges(self):
        receivers = []
        for layer in range(LAYERS):
            receivers += [(f"{layer}.{h} {part}", 2 * layer) for part in ("query", "key", "value") for h in range(H)]
            receivers.append((f"ffn {layer}", 2 * layer + 1))
        for receiver, stage in receivers + [("logits", 2 * LAYERS)]:
            for names, _ in self.senders(stage):
                yield from ((sender, receiver) for sender in names)


def patching(norm):
    fixture = Fixture(f"patching_{norm}", heads=H, norm=norm, norm_eps=1e-5, ignored_label=IGNORED)
    model = Model(fixture, norm == "pre")
    clean, corrupted = fixture.integers(V, PAIRS, T), fixture.integers(V, PAIRS, T)
    of_clean, add, z = model.run(clean)
    of_corrupted, others, other_z = model.run(corrupted)
    # Each input's label is what the model predicts, so that the logit difference is positive; some have none.
    ignored = torch.arange(T) < 1
    labels = [logits.argmax(-1).masked_fill(ignored, IGNORED) for logits in (of_clean, of_corrupted)]
    labeled = ~ignored.expand(PAIRS, T)

    def difference(logits):
        right, wrong = (x.clamp(min=0)[..., None] for x in labels)
        return ((logits.gather(-1, wrong) - logits.gather(-1, right))[..., 0] * labeled).sum()

    base = difference(of_clean)
    total = difference(of_corrupted) - base
    assert total > 1, fixture.name
    edges = list(model.edges())
    exact = [(difference(model.run(clean, {edge}, others)[0]) - base) / total for edge in edges]
    assert abs(difference(model.run(clean, set(edges), others)[0]) - base - total) < 1e-9

    # The gradient for one copy of a contribution, that of its edge, is the slope at 0 of a step along the change.
    estimates = []
    for sender, receiver in edges:
        step = torch.zeros((), requires_grad=True)
        moved = {**add, sender: add[sender] + step * (others[sender] - add[sender])}
        changed = difference(model.run(clean, {(sender, receiver)}, moved)[0])
        estimates.append(torch.autograd.grad(changed, step)[0] / total)

    at = [list(range(T))] + [[t] for t in range(T)]
    heads = list(itertools.product(range(LAYERS), range(H)))
    noising = [[(difference(model.run(clean, heads={h: (t, other_z[h])})[0]) - base) / total for t in at]
               for h in heads]
    denoising = [[(base + total - difference(model.run(corrupted, heads={h: (t, z[h])})[0])) / total for t in at]
                 for h in heads]
    lens = torch.stack([model.output(model.stream(2 * layer, add.get)) for layer in range(LAYERS + 1)])

    fixture.add(model.p)
    fixture.add({"clean": clean, "corrupted": corrupted, "clean_labels": labels[0], "corrupted_labels": labels[1],
                 "edges": torch.tensor(exact), "attributions": torch.tensor(estimates),
                 "noising": torch.tensor(noising), "denoising": torch.tensor(denoising), "lens": lens})
    return fixture
