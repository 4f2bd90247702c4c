"""thimble's models in PyTorch: around torch.nn.TransformerEncoder, torch.nn.Transformer and torch.nn.GRU.

Each is made from the `model` of a thimble config and from the shapes of its tensors by name, has parameters of
thimble's names, and turns tokens into logits. attention() gives the weights in evaluation mode. Make one with make().
"""

import functools

import torch
import torch.nn.functional as F
from torch import nn

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": functools.partial(F.gelu, approximate="tanh"),
               "tanh": torch.tanh, "silu": F.silu}


def require_representable(config, module):
    """Raises ValueError for a Transformer that PyTorch's layers have no place for, naming what they lack."""
    attention = config["attention"]
    heads = config["heads"]

    def own_width(of_a_head):
        return of_a_head != 0 and of_a_head * heads != config["d_model"]

    lacking = {
        "norm_type": (config["norm_type"] != "layer", "RMS norm"),
        "gated": (config["gated"], "gated feed-forward net"),
        "norm_weight": (not config.get("norm_weight", True), "norm without a weight"),
        "norm_embedding": (config.get("norm_embedding", False), "norm after the embedding"),
        "norm_final": (not config.get("norm_final", True), "pre-norm model without a norm before the output"),
        "bias": (not config.get("bias", True), "linear layers without a bias"),
        "output.tied": (config["output"].get("tied", False), "output that is tied to the embedding"),
        "d_ff": (config["d_ff"] == 0, "layers without a feed-forward net"),
        "mixer": (config["mixer"] != "attention", f"{config['mixer']} in place of attention"),
        "positions": (config["positions"] in ("rotary", "alibi"),
                      {"rotary": "rotary positions", "alibi": "ALiBi"}.get(config["positions"])),
        "attention.score": (attention["score"] != "scaled_dot", f"attention with {attention['score']} scores"),
        "attention.combine": (attention["combine"] != "concat", "heads that are added up"),
        "attention.in_proj": (not attention.get("in_proj", True), "attention without input projections"),
        "attention.tie_query_key": (attention["tie_query_key"], "projection shared by queries and keys"),
        "attention.kv_heads": (attention["kv_heads"] not in (0, heads), "keys and values shared by heads"),
        "attention.d_key": (own_width(attention["d_key"]), "width of its own for keys"),
        "attention.d_value": (own_width(attention["d_value"]), "width of its own for values")}
    for key, (lacks, feature) in lacking.items():
        if lacks:
            value = functools.reduce(lambda section, part: section[part], key.split("."), config)
            raise ValueError(f"{module} has no {feature} (model.{key}: {str(value).lower()})")


def sinusoidal(time, channels):
    """pe[t, 2i] = sin(t / 10000^(2i/C)), pe[t, 2i+1] = cos(same): Vaswani et al. 2017, section 3.5."""
    angle = torch.arange(time).double()[:, None] / 10000 ** (torch.arange(0, channels, 2).double() / channels)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :channels]


def causal_mask(time):
    """True where query t must not attend to key s."""
    return torch.ones(time, time).triu(1).bool()


def padding_mask(lengths, time):
    """True at the padding of sequences of these lengths; None where there is none."""
    return None if lengths is None else torch.arange(time) >= lengths[:, None]


def settings(config, shapes):
    """Arguments of torch.nn.TransformerEncoderLayer and of its decoder's counterpart."""
    return dict(d_model=config["d_model"], nhead=config["heads"],
                dim_feedforward=shapes["encoder.layers.0.linear1.weight"][0], dropout=config["dropout"],
                activation=ACTIVATIONS[config["activation"]], norm_first=config["norm"] == "pre", batch_first=True,
                layer_norm_eps=norm_epsilon(config))


def norm_epsilon(config):
    return config.get("norm_epsilon", 1e-5)  # older checkpoints do not name it


def encoder(config, shapes):
    layer = nn.TransformerEncoderLayer(**settings(config, shapes))
    layer.self_attn.dropout = config["attention"]["dropout"]
    return nn.TransformerEncoder(layer, config["layers"], final_norm(config), enable_nested_tensor=False)


def final_norm(config):
    return nn.LayerNorm(config["d_model"], norm_epsilon(config)) if config["norm"] == "pre" else None


def output_net(config, shapes):
    channels, hidden = config["d_model"], config["output"]["hidden"]
    name = "output.3.weight" if hidden else "output.weight"
    outputs = shapes.get(name, shapes["token_embedding.weight"])[0]
    if not hidden:
        return nn.Linear(channels, outputs)
    return nn.Sequential(nn.Linear(channels, hidden), nn.LayerNorm(hidden, norm_epsilon(config)), nn.ReLU(),
                         nn.Linear(hidden, outputs))


def add_embeddings(module, shapes):
    """Tokens' and, where positions are learned, positions' embeddings, under their names."""
    for name, shape in shapes.items():
        if name.endswith("_embedding.weight"):
            setattr(module, name[:-len(".weight")], nn.Embedding(*shape))


def embed(module, prefix, tokens):
    """Embeddings (B, T, C) with their positions and dropout."""
    x = getattr(module, f"{prefix}token_embedding")(tokens)
    time, channels = x.shape[1:]
    if module.config["positions"] == "learned":
        x = x + getattr(module, f"{prefix}position_embedding").weight[:time]
    elif module.config["positions"] == "sinusoidal":
        x = x + sinusoidal(time, channels).to(x)
    return F.dropout(x, module.config["dropout"], module.training)


def captured_inputs(modules, run):
    """Positional arguments that each module is called with while run() runs."""
    calls = {}
    handles = [module.register_forward_pre_hook(lambda module, given: calls.update({module: given}))
               for module in modules]
    run()
    for handle in handles:
        handle.remove()
    return [calls[module] for module in modules]


def weights(attention, query, key, **masks):
    """Attention weights (B, H, queries, keys)."""
    return attention(query, key, key, need_weights=True, average_attn_weights=False, **masks)[1]


def encoder_weights(layers, run, **masks):
    """Weights (L, B, H, T, T) of encoder layers while run() runs, from what each layer is given."""
    inputs = [x for x, *_ in captured_inputs(layers, run)]
    inputs = [layer.norm1(x) if layer.norm_first else x for layer, x in zip(layers, inputs)]
    return torch.stack([weights(layer.self_attn, x, x, **masks) for layer, x in zip(layers, inputs)])


class Encoder(nn.Module):
    """Tokens (B, T), all T of them in use, to logits (B, T, V), or (B, V) per sequence."""

    def __init__(self, config, shapes):
        super().__init__()
        require_representable(config, "torch.nn.TransformerEncoder")
        self.config = config
        add_embeddings(self, shapes)
        self.encoder = encoder(config, shapes)
        self.output = output_net(config, shapes)

    def mask(self, time):
        return causal_mask(time) if self.config["attention"]["mask"] == "causal" else None

    def forward(self, tokens):
        x = self.encoder(embed(self, "", tokens), self.mask(tokens.shape[1]))
        if self.config["output"]["per"] == "sequence":
            pooling = self.config["output"]["pooling"]
            x = x.mean(1) if pooling == "mean" else x[:, 0 if pooling == "first" else -1]
        return self.output(x)

    def attention(self, tokens):
        """The weights (L, B, H, T, T)."""
        return encoder_weights(self.encoder.layers, lambda: self(tokens), attn_mask=self.mask(tokens.shape[1]))


class EncoderDecoder(nn.Transformer):
    """Sources (B, S), of the lengths (B) where not all of S, and tokens (B, T) to logits (B, T, V) of what follows."""

    def __init__(self, config, shapes):
        require_representable(config, "torch.nn.Transformer")
        layer = nn.TransformerDecoderLayer(**settings(config, shapes))
        layer.self_attn.dropout = layer.multihead_attn.dropout = config["attention"]["dropout"]
        # PyTorch's own encoder and decoder end with a norm after post-norm layers, too.
        super().__init__(config["d_model"], config["heads"], custom_encoder=encoder(config, shapes),
                         custom_decoder=nn.TransformerDecoder(layer, config["layers"], final_norm(config)),
                         batch_first=True)
        self.config = config
        add_embeddings(self, shapes)
        self.output = output_net(config, shapes)

    def forward(self, sources, tokens, lengths=None):
        hidden = padding_mask(lengths, sources.shape[1])
        return self.output(super().forward(
            embed(self, "source_", sources), embed(self, "", tokens), tgt_mask=causal_mask(tokens.shape[1]),
            src_key_padding_mask=hidden, memory_key_padding_mask=hidden))

    def attention(self, sources, tokens, lengths=None):
        """The weights by name: encoder (L, B, H, S, S), decoder (L, B, H, T, T) and cross (L, B, H, T, S)."""
        hidden = padding_mask(lengths, sources.shape[1])

        def run():
            self(sources, tokens, lengths)

        def decoder_weights(name, **masks):
            attentions = [getattr(layer, name) for layer in self.decoder.layers]
            given = captured_inputs(attentions, run)
            return torch.stack([weights(attention, query, key, **masks)
                                for attention, (query, key, *_) in zip(attentions, given)])

        return {"encoder": encoder_weights(self.encoder.layers, run, key_padding_mask=hidden),
                "decoder": decoder_weights("self_attn", attn_mask=causal_mask(tokens.shape[1])),
                "cross": decoder_weights("multihead_attn", key_padding_mask=hidden)}


class Recurrent(nn.Module):
    """A bidirectional GRU encodes, a GRU decodes; what goes in and comes out is as in EncoderDecoder."""

    def __init__(self, config, shapes):
        super().__init__()
        self.config = config
        self.kind = config["attention"]["score"]
        vocabulary, channels = shapes["token_embedding.weight"]
        self.source_token_embedding = nn.Embedding(vocabulary, channels)
        self.token_embedding = nn.Embedding(vocabulary, channels)
        self.encoder = nn.ModuleDict({"gru": nn.GRU(channels, channels // 2, batch_first=True, bidirectional=True)})
        self.decoder = nn.ModuleDict({
            "gru": nn.GRU(channels * (2 if self.kind == "additive" else 1), channels, batch_first=True),
            "initial": nn.Linear(channels, channels), "attention": nn.Module()})
        scorer = self.decoder["attention"]
        if self.kind == "additive":
            scorer.query, scorer.key = nn.Linear(channels, channels), nn.Linear(channels, channels)
            scorer.score_weight = nn.Parameter(torch.empty(1, channels))
        if self.kind == "general":
            scorer.score_weight = nn.Parameter(torch.empty(1, channels, channels))
        if self.kind != "none":
            scorer.combine = nn.Linear(2 * channels, channels)
        self.output = nn.Linear(channels, vocabulary)

    def score(self, state, memory):
        """Of one state (B, C) and every position: (B, S)."""
        scorer = self.decoder["attention"]
        if self.kind == "additive":
            return torch.tanh(scorer.query(state)[:, None] + scorer.key(memory)) @ scorer.score_weight[0]
        if self.kind == "cosine":
            state, memory = (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) for x in (state, memory))
        query = state @ scorer.score_weight[0] if self.kind == "general" else state
        scaled = self.kind in ("scaled_dot", "cosine")
        return torch.einsum("bc,bsc->bs", query, memory) / (state.shape[1] ** 0.5 if scaled else 1)

    def run(self, sources, tokens, lengths=None):
        """Logits (B, T, V), and the weights (B, T, S), or none without attention."""
        lengths = torch.full(sources.shape[:1], sources.shape[1]) if lengths is None else lengths
        drop = functools.partial(F.dropout, p=self.config["dropout"], training=self.training)
        embedded = nn.utils.rnn.pack_padded_sequence(drop(self.source_token_embedding(sources)), lengths,
                                                     batch_first=True, enforce_sorted=False)
        states, last = self.encoder["gru"](embedded)
        memory = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=sources.shape[1])[0]
        hidden = padding_mask(lengths, sources.shape[1])
        state = torch.tanh(self.decoder["initial"](last.transpose(0, 1).flatten(1)))
        outputs, all_weights = [], []

        def attend():
            scores = self.score(state, memory)
            all_weights.append(scores.masked_fill(hidden, 0) if self.kind == "linear" else
                               F.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1))
            dropped = F.dropout(all_weights[-1], self.config["attention"]["dropout"], self.training)
            return torch.einsum("bs,bsc->bc", dropped, memory)

        for x in drop(self.token_embedding(tokens)).unbind(1):
            context = attend() if self.kind == "additive" else None
            x = x if context is None else torch.cat([x, context], dim=-1)
            state = self.decoder["gru"](x[:, None], state[None])[1][0]
            if self.kind == "none":
                outputs.append(state)
                continue
            context = attend() if context is None else context
            combine = self.decoder["attention"].combine
            outputs.append(torch.tanh(combine(torch.cat([context, state], dim=-1))))
        return self.output(drop(torch.stack(outputs, dim=1))), all_weights and torch.stack(all_weights, dim=1)

    def forward(self, sources, tokens, lengths=None):
        return self.run(sources, tokens, lengths)[0]

    def attention(self, sources, tokens, lengths=None):
        """The weights by name: cross (1, B, 1, T, S), or nothing without attention."""
        found = self.run(sources, tokens, lengths)[1]
        return {} if self.kind == "none" else {"cross": found[None, :, None]}


KINDS = {"encoder": Encoder, "encoder_decoder": EncoderDecoder, "recurrent": Recurrent}


def make(config, shapes):
    """The model of a config, with weights that are not set yet. Raises ValueError where PyTorch has no such layers."""
    return KINDS[config["kind"]](config, shapes)
