#!/usr/bin/env python3
"""Turns a checkpoint of thimble into a PyTorch model around torch.nn.TransformerEncoder.

As a module:
    from to_torch import load
    model = load("runs/reverse/checkpoints/final.safetensors")

The sizes are those of the tensors; heads, norm, activation and the like are in the config that a checkpoint carries.
As a program it writes the model's state dict, for torch.load. Needs PyTorch (Debian and Ubuntu: apt-get install
python3-torch, then run with /usr/bin/python3).
"""

import argparse
import functools
import sys

import torch
import torch.nn.functional as F
import yaml
from torch import nn

import safetensors_file

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": functools.partial(F.gelu, approximate="tanh"),
               "tanh": torch.tanh, "silu": F.silu}
# What torch.nn.TransformerEncoder can be, by key of a config's `model`; what a key does not list it cannot.
LIMITS = {"norm_type": ["layer"], "gated": [False], "mixer": ["attention"],
          "positions": ["sinusoidal", "learned", "none"], "attention.score": ["scaled_dot"],
          "attention.combine": ["concat"], "attention.tie_query_key": [False], "attention.kv_heads": [0],
          "attention.d_key": [0], "attention.d_value": [0]}


def check(config):
    """Raises ValueError for a model that torch.nn.TransformerEncoder has no place for."""
    flat = {**config, **{f"attention.{key}": value for key, value in config["attention"].items()}}
    for key, values in LIMITS.items():
        if flat.get(key, values[0]) not in values:
            raise ValueError(f"torch.nn.TransformerEncoder has no model.{key} {flat[key]}")
    if config["d_ff"] == 0:
        raise ValueError("torch.nn.TransformerEncoder has no layers without a feed-forward net")


def sinusoidal(time, channels):
    """pe[t, 2i] = sin(t / 10000^(2i/C)), pe[t, 2i+1] = cos(same): Vaswani et al. 2017, section 3.5."""
    angle = torch.arange(time).double()[:, None] / 10000 ** (torch.arange(0, channels, 2).double() / channels)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :channels]


class Model(nn.Module):
    """thimble's model: tokens (B, T), all T of them in use, to logits (B, T, V), or (B, V) per sequence."""

    def __init__(self, config, shapes):
        """config: the `model` of a thimble config; shapes: of its tensors, by name."""
        super().__init__()
        check(config)
        self.config = config
        vocabulary, channels = shapes["token_embedding.weight"]
        hidden = shapes["encoder.layers.0.linear1.weight"][0]
        pre = config["norm"] == "pre"
        layer = nn.TransformerEncoderLayer(channels, config["heads"], hidden, dropout=config["dropout"],
                                           activation=ACTIVATIONS[config["activation"]], norm_first=pre,
                                           batch_first=True)
        layer.self_attn.dropout = config["attention"]["dropout"]
        self.token_embedding = nn.Embedding(vocabulary, channels)
        if config["positions"] == "learned":
            self.position_embedding = nn.Embedding(*shapes["position_embedding.weight"])
        self.dropout = nn.Dropout(config["dropout"])
        layers = sum(name.endswith(".linear1.weight") for name in shapes)
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(channels) if pre else None,
                                             enable_nested_tensor=False)
        if "output.0.weight" in shapes:
            width = shapes["output.0.weight"][0]
            self.output = nn.Sequential(nn.Linear(channels, width), nn.LayerNorm(width), nn.ReLU(),
                                        nn.Linear(width, vocabulary))
        else:
            self.output = nn.Linear(channels, vocabulary)

    def mask(self, time):
        """True where query t must not see key s; None where each sees every key."""
        return torch.ones(time, time).triu(1).bool() if self.config["attention"]["mask"] == "causal" else None

    def forward(self, tokens):
        x = self.token_embedding(tokens)
        time, channels = x.shape[1:]
        if self.config["positions"] == "learned":
            x = x + self.position_embedding.weight[:time]
        elif self.config["positions"] == "sinusoidal":
            x = x + sinusoidal(time, channels).to(x)
        x = self.encoder(self.dropout(x), self.mask(time))
        if self.config["output"]["per"] == "sequence":
            pooling = self.config["output"]["pooling"]
            x = x.mean(1) if pooling == "mean" else x[:, 0 if pooling == "first" else -1]
        return self.output(x)

    def attention(self, tokens):
        """The weights (L, B, H, T, T) of every layer, in evaluation mode, from what each layer is given."""
        inputs = []
        handles = [layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
                   for layer in self.encoder.layers]
        self(tokens)
        for handle in handles:
            handle.remove()
        weights = []
        for layer, x in zip(self.encoder.layers, inputs):
            x = layer.norm1(x) if layer.norm_first else x
            weights.append(layer.self_attn(x, x, x, attn_mask=self.mask(x.shape[1]), need_weights=True,
                                           average_attn_weights=False)[1])
        return torch.stack(weights)


def load(path):
    """The model of a checkpoint, in evaluation mode."""
    arrays, metadata = safetensors_file.read(path)
    if "config" not in metadata:
        raise ValueError("has no config among its metadata; is it a checkpoint of thimble?")
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()
               if not name.startswith("optimizer.")}
    model = Model(yaml.safe_load(metadata["config"])["model"],
                  {name: tuple(tensor.shape) for name, tensor in tensors.items()})
    model.to(tensors["token_embedding.weight"].dtype).load_state_dict(tensors)
    return model.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", metavar="CHECKPOINT.safetensors")
    parser.add_argument("out", metavar="OUT.pt")
    args = parser.parse_args()
    try:
        torch.save(load(args.checkpoint).state_dict(), args.out)
    except (OSError, ValueError) as error:
        print(f"to_torch: {args.checkpoint}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
