"""thimble's models as modules of PyTorch, with parameters of thimble's names.

make() makes one from the `model` of a config and the shapes of its tensors by name. It turns tokens into logits, and
attention() gives its weights. A Transformer has an nn.Identity at each site of docs/serve.md, by its name, for hooks.
"""

import contextlib
import functools

import torch
import torch.nn.functional as F
from torch import nn

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": functools.partial(F.gelu, approximate="tanh"),
               "tanh": torch.tanh, "silu": F.silu}


def sinusoidal(time, channels):
    """pe[t, 2i] = sin(t / 10000^(2i/C)), pe[t, 2i+1] = cos(same): Vaswani et al. 2017, section 3.5."""
    angle = torch.arange(time).double()[:, None] / 10000 ** (torch.arange(0, channels, 2).double() / channels)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :channels]


def rotate(x, layout, base):
    """x (B, T, H, D) with columns 2i and 2i+1, or in halves i and i + D/2, rotated by the angle t base^(-2i/D)."""
    exponent = torch.arange(0, x.shape[3], 2).double() / x.shape[3]
    angle = torch.arange(x.shape[1]).double()[:, None, None] / base ** exponent
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    a, b = x.chunk(2, -1) if layout == "halves" else (x[..., ::2], x[..., 1::2])
    turned = a * cos - b * sin, a * sin + b * cos
    return torch.cat(turned, -1) if layout == "halves" else torch.stack(turned, -1).flatten(-2)


def rms_norm(x, epsilon=1e-5):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)


def attention_scores(kind, q, k, weight):
    """Scores (B, H, T, S) of queries (B, H, T, D) and keys (B, H, S, D)."""
    if kind == "additive":
        return torch.einsum("bhtsd,hd->bhts", torch.tanh(q[:, :, :, None] + k[:, :, None]), weight)
    q = q @ weight if kind == "general" else q
    q, k = (rms_norm(q), rms_norm(k)) if kind == "cosine" else (q, k)
    return q @ k.transpose(-1, -2) / (q.shape[-1] ** 0.5 if kind in ("scaled_dot", "cosine") else 1)


def padding_mask(tokens, lengths):
    """True at the padding of tokens (B, T) of these lengths (B); nowhere without lengths."""
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    return (positions >= (len(positions) if lengths is None else lengths[:, None])).expand(tokens.shape)


class Transformer(nn.Module):
    """Tokens (B, T), of the lengths (B) where not all of T, to logits (B, T, V), or (B, V) per sequence."""

    def __init__(self, config, shapes):
        super().__init__()
        self.config, self.shapes = config, shapes
        with torch.no_grad():  # this pass makes the parts of the model, each where it is used
            self(*[torch.zeros(1, 1).long()] * (1 if config["kind"] == "encoder" else 2))

    def part(self, name, make):
        """The module or parameter of this name; makes it if there is none."""
        parent, _, last = name.rpartition(".")
        kind = nn.ModuleList if parent.endswith(("layers", "blocks")) else nn.Module
        module = self.part(parent, kind) if parent else self
        if not hasattr(module, last):
            setattr(module, last, make())
        return getattr(module, last)

    def parameter(self, wanted, name, *shape):
        return self.part(name, lambda: nn.Parameter(torch.empty(shape))) if wanted else None

    def point(self, name, x):
        return self.part(name, nn.Identity)(x)

    def embedding(self, name):
        return self.part(name, lambda: nn.Embedding(*self.shapes[name + ".weight"]))

    def linear(self, name, x, outputs):
        return self.part(name, lambda: nn.Linear(x.shape[-1], outputs, self.config["bias"]))(x)

    def norm(self, name, x, kind=None):
        weight = self.parameter(self.config["norm_weight"], name + ".weight", x.shape[-1])
        if (kind or self.config["norm_type"]) == "rms":
            return rms_norm(x, self.config["norm_epsilon"]) * (1 if weight is None else weight)
        bias = self.parameter(self.config["norm_weight"] and self.config["bias"], name + ".bias", x.shape[-1])
        return F.layer_norm(x, x.shape[-1:], weight, bias, self.config["norm_epsilon"])

    def drop(self, x):
        return F.dropout(x, self.config["dropout"], self.training)

    def attend(self, name, site, x, memory, padding, causal=False, positions="none"):
        """What x (B, T, C) takes from memory (B, S, C), except from its padding (B, S)."""
        a, heads, channels, biased = (self.config[key] for key in ("attention", "heads", "d_model", "bias"))
        d_key, d_value = (a[key] or channels // heads for key in ("d_key", "d_value"))
        kv_heads = a["kv_heads"] or heads
        first_key = 0 if a["tie_query_key"] else heads * d_key
        first_value = first_key + kv_heads * d_key
        rows = first_value + kv_heads * d_value
        weight = self.parameter(a["in_proj"], name + ".in_proj_weight", rows, channels)
        bias = self.parameter(a["in_proj"] and biased, name + ".in_proj_bias", rows)

        def project(point, source, first, heads, width):
            rows = slice(first, first + heads * width)
            y = F.linear(source, weight[rows], bias[rows] if biased else None) if a["in_proj"] else source
            return self.point(site + point, y.unflatten(-1, (heads, width)))

        q = project("hook_q", x, 0, heads, d_key)
        k = project("hook_k", memory, first_key, kv_heads, d_key)
        v = project("hook_v", memory, first_value, kv_heads, d_value)
        if positions == "rotary":
            q, k = (self.point(site + point, rotate(y, self.config["rotary"], self.config["rotary_base"]))
                    for point, y in (("hook_rot_q", q), ("hook_rot_k", k)))
        q, k, v = (y.repeat_interleave(heads // y.shape[2], 2).transpose(1, 2) for y in (q, k, v))
        sizes = {"additive": [heads, d_key], "general": [heads, d_key, d_key]}.get(a["score"], [])
        scores = attention_scores(a["score"], q, k, self.parameter(sizes, name + ".score_weight", *sizes))
        ahead = torch.arange(k.shape[2], device=x.device) - torch.arange(q.shape[2], device=x.device)[:, None]
        if positions == "alibi":
            slopes = 2 ** (-8 * torch.arange(1, heads + 1).double() / heads)
            scores = scores - slopes.to(x)[:, None, None] * ahead.abs()
        hidden = padding[:, None, None] | (ahead > 0) if causal else padding[:, None, None]
        weights = scores.masked_fill(hidden, 0) if a["score"] == "linear" else F.softmax(
            self.point(site + "hook_attn_scores", scores.masked_fill(hidden, -torch.inf)), dim=-1)
        weights = self.point(site + "hook_pattern", weights)
        z = self.point(site + "hook_z", (F.dropout(weights, a["dropout"], self.training) @ v).transpose(1, 2))
        if a["combine"] == "concat":
            return self.linear(name + ".out_proj", z.flatten(2), channels)
        out = [self.parameter(True, f"{name}.out_proj.{head}.weight", channels, d_value) for head in range(heads)]
        return F.linear(z.flatten(2), torch.cat(out, 1), self.parameter(biased, name + ".out_proj.bias", channels))

    def convolve(self, name, x, padding, causal):
        x, around = x.masked_fill(padding[:, :, None], 0).transpose(1, 2), self.config["window"] - 1
        conv = self.part(name, lambda: nn.Conv1d(x.shape[1], x.shape[1], around + 1, bias=self.config["bias"]))
        return conv(F.pad(x, (around, 0) if causal else (around // 2, around // 2))).transpose(1, 2)

    def feed_forward(self, name, site, x):
        size, activation = self.config["d_ff"], ACTIVATIONS[self.config["activation"]]
        hidden = activation(self.point(site + "hook_pre", self.linear(name + ".linear1", x, size)))
        if self.config["gated"]:
            hidden = hidden * self.point(site + "hook_pre_linear", self.linear(name + ".gate", x, size))
        return self.linear(name + ".linear2", self.drop(self.point(site + "hook_post", hidden)), x.shape[-1])

    def layer(self, name, site, x, padding, memory=None, memory_padding=None):
        """x (B, T, C) after self-attention, attention to a memory, if there is one, and the feed-forward net."""
        pre, causal = self.config["norm"] == "pre", memory is not None or self.config["attention"]["mask"] == "causal"

        def mix(x):
            if self.config["mixer"] == "convolution":
                return self.convolve(name + ".conv", x, padding, causal)
            return self.attend(name + ".self_attn", site + "attn.", x, x, padding, causal, self.config["positions"])

        sublayers = [(mix, pre and "ln1.hook_normalized", "attn", "mid")]
        if memory is not None:
            sublayers.append((functools.partial(self.attend, name + ".multihead_attn", site + "cross.", memory=memory,
                                                padding=memory_padding), None, "cross", "cross"))
        if self.config["d_ff"]:
            sublayers.append((functools.partial(self.feed_forward, name, site + "mlp."),
                              "ln2.hook_normalized" if pre else "hook_mlp_in", "mlp", "post"))
        x = self.point(site + "hook_resid_pre", x)
        for number, (f, read, added, end) in enumerate(sublayers, 1):
            norm = functools.partial(self.norm, f"{name}.norm{number}")
            y = norm(x) if pre else x
            x = x + self.point(f"{site}hook_{added}_out", self.drop(f(self.point(site + read, y) if read else y)))
            x = self.point(f"{site}hook_resid_{end}", x if pre else norm(x))
        return self.point(site + "hook_resid_post", x) if len(sublayers) == 1 else x

    def stack(self, name, site, prefix, tokens, lengths, *memory):
        """The residual stream (B, T, C) at the end of the encoder or decoder, and the padding of its tokens."""
        padding = padding_mask(tokens, lengths)
        x = self.point(site + "hook_embed", self.embedding(prefix + "token_embedding")(tokens))
        if self.config["positions"] in ("learned", "sinusoidal"):
            table = (sinusoidal(*x.shape[1:]).to(x) if self.config["positions"] == "sinusoidal" else
                     self.embedding(prefix + "position_embedding").weight[:x.shape[1]])
            x = x + self.point(site + "hook_pos_embed", table.expand_as(x))
        x = self.drop(self.norm("embedding_norm", x) if self.config["norm_embedding"] else x)
        for layer in range(self.config["layers"]):
            x = self.layer(f"{name}.layers.{layer}", f"{site}blocks.{layer}.", x, padding, *memory)
        if self.config["norm"] == "pre" and self.config["norm_final"]:
            x = self.point(site + "ln_final.hook_normalized", self.norm(name + ".norm", x))
        return x, padding

    def logits(self, x):
        hidden = self.config["output"]["hidden"]
        if self.config["output"]["tied"]:
            bias = self.parameter(self.config["bias"], "output.bias", self.token_embedding.num_embeddings)
            return F.linear(x, self.token_embedding.weight, bias)
        if hidden:
            x = F.relu(self.norm("output.1", self.linear("output.0", x, hidden), "layer"))
        name = "output.3" if hidden else "output"
        return self.linear(name, x, self.shapes[name + ".weight"][0])

    def forward(self, tokens, lengths=None):
        x, padding = self.stack("encoder", "", "", tokens, lengths)
        if self.config["output"]["per"] == "sequence":
            used, pooling = ~padding, self.config["output"]["pooling"]
            x = ((x * used[:, :, None]).sum(1) / used.sum(1, keepdim=True) if pooling == "mean" else
                 x[range(len(x)), used.sum(1) - 1] if pooling == "last" else x[:, 0])
        return self.logits(x)

    def attention(self, *inputs, **lengths):
        """The weights (L, B, H, T, T), none of convolutions; of an encoder-decoder by name: encoder, decoder, cross."""
        found = {}
        with contextlib.ExitStack() as hooks:
            for name, module in self.named_modules():
                if name.endswith("hook_pattern"):
                    kept = found.setdefault("cross" if ".cross." in name else name.split(".")[0], [])
                    hooks.enter_context(module.register_forward_hook(lambda *call, kept=kept: kept.append(call[-1])))
            self(*inputs, **lengths)
        found = {kind: torch.stack(kept) for kind, kept in found.items()}
        return found if self.config["kind"] == "encoder_decoder" else found.get("blocks", torch.empty(0))


class EncoderDecoder(Transformer):
    """Sources (B, S), of the lengths (B) where not all of S, and tokens (B, T) to logits (B, T, V) of what follows."""

    def forward(self, sources, tokens, lengths=None):
        memory = self.stack("encoder", "encoder.", "source_", sources, lengths)
        return self.logits(self.stack("decoder", "decoder.", "", tokens, None, *memory)[0])


class Recurrent(nn.Module):
    """A bidirectional GRU encodes, a GRU decodes; what goes in and comes out is as in EncoderDecoder."""

    def __init__(self, config, shapes):
        super().__init__()
        self.config, self.kind = config, config["attention"]["score"]
        vocabulary, channels = shapes["token_embedding.weight"]
        self.source_token_embedding, self.token_embedding = (nn.Embedding(vocabulary, channels) for _ in range(2))
        self.encoder = nn.ModuleDict({"gru": nn.GRU(channels, channels // 2, batch_first=True, bidirectional=True)})
        self.decoder = nn.ModuleDict({
            "gru": nn.GRU(channels * (2 if self.kind == "additive" else 1), channels, batch_first=True),
            "initial": nn.Linear(channels, channels), "attention": nn.Module()})
        scorer = self.decoder["attention"]
        if self.kind == "additive":
            scorer.query, scorer.key = nn.Linear(channels, channels), nn.Linear(channels, channels)
        shape = {"additive": (1, channels), "general": (1, channels, channels)}.get(self.kind)
        scorer.score_weight = nn.Parameter(torch.empty(shape)) if shape else None
        if self.kind != "none":
            scorer.combine = nn.Linear(2 * channels, channels)
        self.output = nn.Linear(channels, vocabulary)

    def run(self, sources, tokens, lengths=None):
        """Logits (B, T, V), and the weights (B, T, S), or none without attention."""
        lengths = torch.full(sources.shape[:1], sources.shape[1]) if lengths is None else lengths
        drop = functools.partial(F.dropout, p=self.config["dropout"], training=self.training)
        embedded = nn.utils.rnn.pack_padded_sequence(drop(self.source_token_embedding(sources)), lengths,
                                                     batch_first=True, enforce_sorted=False)
        states, last = self.encoder["gru"](embedded)
        memory = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=sources.shape[1])[0]
        hidden = padding_mask(sources, lengths)
        state = torch.tanh(self.decoder["initial"](last.transpose(0, 1).flatten(1)))
        scorer, additive, outputs, all_weights = self.decoder["attention"], self.kind == "additive", [], []
        keys = scorer.key(memory) if additive else memory

        def attend():
            query = scorer.query(state) if additive else state
            scores = attention_scores(self.kind, query[:, None, None], keys[:, None], scorer.score_weight)[:, 0, 0]
            all_weights.append(scores.masked_fill(hidden, 0) if self.kind == "linear" else
                               F.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1))
            dropped = F.dropout(all_weights[-1], self.config["attention"]["dropout"], self.training)
            return torch.einsum("bs,bsc->bc", dropped, memory)

        for x in drop(self.token_embedding(tokens)).unbind(1):
            context = attend() if additive else None
            x = x if context is None else torch.cat([x, context], dim=-1)
            state = self.decoder["gru"](x[:, None], state[None])[1][0]
            if self.kind != "none":
                context = attend() if context is None else context
            outputs.append(state if context is None else torch.tanh(scorer.combine(torch.cat([context, state], dim=-1))))
        return self.output(drop(torch.stack(outputs, dim=1))), all_weights and torch.stack(all_weights, dim=1)

    def forward(self, sources, tokens, lengths=None):
        return self.run(sources, tokens, lengths)[0]

    def attention(self, sources, tokens, lengths=None):
        """The weights by name: cross (1, B, 1, T, S), or nothing without attention."""
        found = self.run(sources, tokens, lengths)[1]
        return {} if self.kind == "none" else {"cross": found[None, :, None]}


def make(config, shapes):
    """The model of a config, with weights that are not set yet."""
    later = {"norm_epsilon": 1e-5, "norm_weight": True, "norm_embedding": False, "norm_final": True, "bias": True,
             "rotary": "pairs", "rotary_base": 10000.0}  # keys that older checkpoints do not name
    config = {**later, **config, "attention": {"in_proj": True, **config["attention"]},
              "output": {"tied": False, **config["output"]}}
    kinds = {"encoder": Transformer, "encoder_decoder": EncoderDecoder, "recurrent": Recurrent}
    return kinds[config["kind"]](config, shapes)
