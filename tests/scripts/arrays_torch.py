"""Models as PyTorch computes them, one sequence at a time and without padding, for arrays_fixture.py."""

import math

import numpy
import torch

ACTIVATIONS = {"relu": lambda x: x * (x > 0), "tanh": torch.tanh, "silu": lambda x: x / (1 + torch.exp(-x)),
               "gelu": lambda x: x / 2 * (1 + torch.erf(x / math.sqrt(2))),
               "gelu_tanh": lambda x: x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))}
DEFAULTS = {"kind": "encoder", "heads": 1, "layers": 1, "norm": "post", "norm_type": "layer", "norm_epsilon": 1e-5,
            "activation": "relu", "positions": "sinusoidal", "rotary": "pairs", "rotary_base": 10000.0, "mixer": "attention",
            "window": 3, "attention": {}, "output": {}}


def layout(name):
    """The axes of heads and of positions in the array of a sequence."""
    return (0, 1) if name.endswith(("hook_pattern", "hook_attn_scores")) else (1, 0)


class Pass:
    """One sequence through a model. `found` has the tensors of each site; those that are replaced hold what was put there."""

    def __init__(self, model, parameters, replace, sequence):
        self.m, self.p, self.replace, self.sequence = {**DEFAULTS, **model}, parameters, replace, sequence
        self.a = self.m["attention"]
        self.found = {}

    def site(self, names, x, at=0):
        """Returns x, which has one name or more, after replacements; its positions begin with `at`."""
        names = [names] if isinstance(names, str) else names
        x = x.clone()
        for one in self.replace:
            if one["site"] not in names:
                continue
            head_axis, position_axis = layout(one["site"])
            begin = [at if axis == position_axis else 0 for axis in range(x.dim())]

            def own(array):
                array = array[self.sequence if len(array) > 1 else 0]
                return torch.from_numpy(array[tuple(slice(b, b + n) for b, n in zip(begin, x.shape))])

            def chosen(indices, axis):
                flags = torch.tensor([i + begin[axis] in indices for i in range(x.shape[axis])])
                return flags.view([-1 if i == axis else 1 for i in range(x.dim())])

            here = own(one["mask"]) if "mask" in one else torch.ones(x.shape, dtype=torch.bool)
            if "heads" in one:
                here = here & chosen(one["heads"], head_axis)
            if "positions" in one:
                here = here & chosen(one["positions"], position_axis)
            x = torch.where(here, own(one["values"]) if "values" in one else torch.zeros(x.shape), x)
        x.retain_grad()
        for name in names:
            self.found.setdefault(name, []).append(x)
        return x

    def biased(self, name, x):
        return x + self.p[name + ".bias"] if name + ".bias" in self.p else x

    def linear(self, name, x):
        return self.biased(name, x @ self.p[name + ".weight"].T)

    def norm(self, name, x, kind=None):
        if (kind or self.m["norm_type"]) == "layer":
            x = x - x.mean(-1, keepdim=True)
        x = x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.m["norm_epsilon"])
        return self.biased(name, x * self.p[name + ".weight"])

    def normalized(self, site, name, x):
        """A norm with its sites, of which the scale is only read."""
        moved = x - x.mean(-1, keepdim=True) if self.m["norm_type"] == "layer" else x
        scale = torch.sqrt((moved * moved).mean(-1, keepdim=True) + self.m["norm_epsilon"]).detach()
        self.found[site + "hook_scale"] = [scale]
        return self.site(site + "hook_normalized", self.norm(name, x))

    def rotate(self, x):
        """Of (T, H, D): a pair of columns (a, b) at position t becomes (a cos - b sin, a sin + b cos) of its angle."""
        width = x.shape[-1]
        angle = torch.arange(len(x)).double()[:, None] * self.m["rotary_base"] ** (-torch.arange(0, width, 2) / width)
        cos, sin = angle.cos()[:, None], angle.sin()[:, None]
        halves = self.m["rotary"] == "halves"
        a, b = (x[..., :width // 2], x[..., width // 2:]) if halves else (x[..., ::2], x[..., 1::2])
        turned = [a * cos - b * sin, a * sin + b * cos]
        return torch.cat(turned, -1) if halves else torch.stack(turned, -1).flatten(-2)

    def scores(self, parameter, q, k):
        """Of queries (T, H, D) and keys (S, H, D): (H, T, S)."""
        kind = self.a.get("score", "scaled_dot")
        if kind == "additive":
            return torch.einsum("hd,tshd->hts", self.p[parameter], torch.tanh(q[:, None] + k[None]))
        if kind == "general":
            return torch.einsum("thd,hde,she->hts", q, self.p[parameter], k)
        products = torch.einsum("thd,shd->hts", q, k)
        return products / math.sqrt(q.shape[-1]) if kind == "scaled_dot" else products

    def pattern(self, site, scores, hidden=torch.tensor(False), at=0):
        if self.a.get("score") == "linear":
            return self.site(site + "hook_pattern", torch.where(hidden, 0.0, scores), at)
        scores = self.site(site + "hook_attn_scores", scores.masked_fill(hidden, -math.inf), at)
        return self.site(site + "hook_pattern", torch.softmax(scores.masked_fill(hidden, -math.inf), -1), at)

    def attend(self, site, name, x, memory=None):
        heads, width = self.m["heads"], self.m["d_model"] // self.m["heads"]
        kv_heads, d_key, d_value = (self.a.get("kv_heads") or heads, self.a.get("d_key") or width,
                                    self.a.get("d_value") or width)
        weight, bias = self.p[name + ".in_proj_weight"], self.p.get(name + ".in_proj_bias")

        def project(source, first, count, columns):
            rows = slice(first, first + count * columns)
            y = source @ weight[rows].T
            return (y if bias is None else y + bias[rows]).unflatten(-1, (count, columns))

        tied = self.a.get("tie_query_key", False)
        source = x if memory is None else memory
        first_key = 0 if tied else heads * d_key
        q = project(x, 0, heads, d_key)
        if tied and memory is None:
            q = k = self.site([site + "hook_q", site + "hook_k"], q)
        else:
            q = self.site(site + "hook_q", q)
            k = self.site(site + "hook_k", project(source, first_key, kv_heads, d_key))
        v = self.site(site + "hook_v", project(source, first_key + kv_heads * d_key, kv_heads, d_value))
        if self.m["positions"] == "rotary" and memory is None:
            if tied:
                q = k = self.site([site + "hook_rot_q", site + "hook_rot_k"], self.rotate(q))
            else:
                q, k = self.site(site + "hook_rot_q", self.rotate(q)), self.site(site + "hook_rot_k", self.rotate(k))
        k, v = (y.repeat_interleave(heads // kv_heads, 1) for y in (k, v))
        scores = self.scores(name + ".score_weight", q, k)
        ahead = torch.arange(len(k)) - torch.arange(len(q))[:, None]
        if self.m["positions"] == "alibi" and memory is None:
            scores = scores - 2.0 ** (-8 * torch.arange(1, heads + 1).double() / heads)[:, None, None] * ahead.abs()
        causal = memory is None and (self.a.get("mask") == "causal" or site.startswith("decoder."))
        pattern = self.pattern(site, scores, ahead > 0 if causal else torch.tensor(False))
        z = self.site(site + "hook_z", torch.einsum("hts,shd->thd", pattern, v))
        if self.a.get("combine") == "sum":
            out = sum(z[:, h] @ self.p[f"{name}.out_proj.{h}.weight"].T for h in range(heads))
        else:
            out = z.flatten(1) @ self.p[name + ".out_proj.weight"].T
        return self.biased(name + ".out_proj", out)

    def convolve(self, name, x):
        """Of (T, C): the sum over a window centered at each position."""
        weight, half = self.p[name + ".weight"], self.m["window"] // 2
        zeros = torch.zeros(half, x.shape[1])
        x = torch.cat([zeros, x, zeros])
        return self.biased(name, sum(x[k:len(x) - 2 * half + k] @ weight[:, :, k].T for k in range(2 * half + 1)))

    def feed_forward(self, site, name, x):
        hidden = ACTIVATIONS[self.m["activation"]](self.site(site + "hook_pre", self.linear(name + "linear1", x)))
        if self.m.get("gated"):
            hidden = hidden * self.site(site + "hook_pre_linear", self.linear(name + "gate", x))
        return self.linear(name + "linear2", self.site(site + "hook_post", hidden))

    def stack(self, site, name, x, memory=None):
        pre = self.m["norm"] == "pre"
        x = self.site(site + "blocks.0.hook_resid_pre", x)
        for layer in range(self.m["layers"]):
            block, old = f"{site}blocks.{layer}.", f"{name}.layers.{layer}."
            y = self.normalized(block + "ln1.", old + "norm1", x) if pre else x
            y = self.site(block + "hook_attn_out", self.convolve(old + "conv", y) if self.m["mixer"] == "convolution" else
                          self.attend(block + "attn.", old + "self_attn", y))
            x = self.site(block + "hook_resid_mid", x + y if pre else self.norm(old + "norm1", x + y))
            last = "norm2"
            if memory is not None:
                y = self.norm(old + "norm2", x) if pre else x
                y = self.site(block + "hook_cross_out", self.attend(block + "cross.", old + "multihead_attn", y, memory))
                x = self.site(block + "hook_resid_cross", x + y if pre else self.norm(old + "norm2", x + y))
                last = "norm3"
            y = self.normalized(block + "ln2.", old + last, x) if pre else self.site(block + "hook_mlp_in", x)
            y = self.site(block + "hook_mlp_out", self.feed_forward(block + "mlp.", old, y))
            follows = [f"{site}blocks.{layer + 1}.hook_resid_pre"] if layer + 1 < self.m["layers"] else []
            x = self.site([block + "hook_resid_post", *follows], x + y if pre else self.norm(old + last, x + y))
        if pre and self.m.get("norm_final", True):
            x = self.normalized(site + "ln_final.", name + ".norm", x)
        return x

    def embed(self, site, name, ids):
        x = self.site(site + "hook_embed", self.p[name + "token_embedding.weight"][ids])
        if self.m["positions"] == "learned":
            x = x + self.site(site + "hook_pos_embed", self.p[name + "position_embedding.weight"][:len(ids)])
        if self.m["positions"] == "sinusoidal":
            width = x.shape[1]
            angle = torch.arange(len(ids)).double()[:, None] / 10000.0 ** (torch.arange(0, width, 2).double() / width)
            table = torch.stack([angle.sin(), angle.cos()], -1).flatten(1).requires_grad_()
            x = x + self.site(site + "hook_pos_embed", table)
        return self.norm("embedding_norm", x) if self.m.get("norm_embedding") else x

    def output(self, x):
        if self.m["output"].get("tied"):
            return self.biased("output", x @ self.p["token_embedding.weight"].T)
        if "output.weight" in self.p:
            return self.linear("output", x)
        hidden = self.norm("output.1", self.linear("output.0", x), "layer")
        return self.linear("output.3", hidden * (hidden > 0))

    def gate(self, name, suffix, x, state):
        """The next state of a GRU: (1 - z) n + z h."""
        of_x, of_state = (y @ self.p[f"{name}.weight_{part}_{suffix}"].T + self.p[f"{name}.bias_{part}_{suffix}"]
                          for part, y in (("ih", x), ("hh", state)))
        (xr, xz, xn), (hr, hz, hn) = of_x.chunk(3), of_state.chunk(3)
        keep, new = torch.sigmoid(xz + hz), torch.tanh(xn + torch.sigmoid(xr + hr) * hn)
        return (1 - keep) * new + keep * state

    def recurrent(self, ids, source):
        width = self.m["d_model"]
        x = self.site("encoder.hook_embed", self.p["source_token_embedding.weight"][source])
        both = []
        for suffix, order in (("l0", range(len(x))), ("l0_reverse", range(len(x) - 1, -1, -1))):
            state, states = torch.zeros(width // 2), {}
            for t in order:
                states[t] = state = self.gate("encoder.gru", suffix, x[t], state)
            both.append((torch.stack([states[t] for t in range(len(x))]), state))
        memory = self.site("encoder.hook_states", torch.cat([states for states, _ in both], 1))
        state = torch.tanh(self.linear("decoder.initial", torch.cat([last for _, last in both])))
        additive = self.a["score"] == "additive"
        keys = self.linear("decoder.attention.key", memory) if additive else memory

        def attend(t):
            query = self.linear("decoder.attention.query", state) if additive else state
            scores = self.scores("decoder.attention.score_weight", query[None, None], keys[:, None])
            pattern = self.pattern("cross.", scores, at=t)
            return self.site("cross.hook_z", torch.einsum("hts,sc->thc", pattern, memory), t)[0, 0]

        outputs = []
        for t, word in enumerate(self.site("decoder.hook_embed", self.p["token_embedding.weight"][ids])):
            context = attend(t) if additive else None
            state = self.gate("decoder.gru", "l0", torch.cat([word, context]) if additive else word, state)
            context = context if additive else attend(t)
            outputs.append(torch.tanh(self.linear("decoder.attention.combine", torch.cat([context, state]))))
        return self.site("decoder.hook_out", torch.stack(outputs))

    def __call__(self, ids, source):
        if self.m["kind"] == "recurrent":
            x = self.recurrent(ids, source)
        elif self.m["kind"] == "encoder_decoder":
            memory = self.stack("encoder.", "encoder", self.embed("encoder.", "source_", source))
            x = self.stack("decoder.", "decoder", self.embed("decoder.", "", ids), memory)
        else:
            x = self.stack("", "encoder", self.embed("", "", ids))
        if self.m["output"].get("per") == "sequence":
            x = {"mean": x.mean(0), "first": x[0], "last": x[-1]}[self.m["output"].get("pooling", "mean")]
        return self.site("logits", self.output(x))


def expected(model, parameters, batch, replace, cotangent=None):
    """The arrays by name: the numbers of one sequence after another, without what lies beyond lengths."""
    parameters = {name: torch.from_numpy(x).requires_grad_() for name, x in parameters.items()}
    passes, losses, product = [], [], 0.0
    for b, length in enumerate(batch["lengths"]):
        one = Pass(model, parameters, replace, b)
        source = batch["sources"][b, :batch["source_lengths"][b]] if "sources" in batch else None
        logits = one(torch.from_numpy(batch["ids"][b, :length]).long(),
                     None if source is None else torch.from_numpy(source).long())
        passes.append(one)
        labels = batch["labels"][b, :length] if batch["labels"].ndim > 1 else batch["labels"][b:b + 1]
        rows = logits.view(len(labels), -1)
        losses += [torch.logsumexp(row, 0) - row[label] for row, label in zip(rows, labels.tolist()) if label >= 0]
        if cotangent is not None:
            product = product + (logits * torch.from_numpy(cotangent[b][:length] if logits.dim() > 1 else cotangent[b])).sum()
    (torch.stack(losses).mean() if cotangent is None else product).backward()

    def numbers(pieces, axis):
        return torch.cat(pieces, axis).detach().numpy().ravel()

    out = {"loss": torch.stack(losses).detach().numpy()}
    for name in passes[0].found:
        axis = layout(name)[1]
        out[name] = numpy.concatenate([numbers(one.found[name], axis) for one in passes])
        if name.endswith("hook_scale"):
            continue
        out["gradient." + name] = numpy.concatenate([numbers([torch.zeros_like(x) if x.grad is None else x.grad
                                                              for x in one.found[name]], axis) for one in passes])
    for name, x in parameters.items():
        out["gradient." + name] = numpy.zeros(x.shape) if x.grad is None else x.grad.numpy()
    return out
