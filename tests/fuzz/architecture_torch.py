#!/usr/bin/env python3
"""Compares losses and gradients of random models, which architecture_fuzz wrote, with PyTorch's in float64.

Usage: architecture_torch.py SOURCE_DIR [--json FILE] FILE.safetensors...   The status is 1 if one differs.

Recurrent models are those of python/thimble/torch_models.py; Transformers are written out here, as torch.nn has no place for
most of their options.
"""

import argparse
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

TOLERANCE = 1e-9  # of the largest gradient of a model, or of 1


def heads_of(x, heads):
    """(B, T, H D) as (B, H, T, D)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def rotate(x, layout, base):
    """Rotary positions (B, H, T, D): columns 2i and 2i+1, or i and i + D/2, are rotated by t base^(-2i / D)."""
    time, width = x.shape[-2:]
    angle = torch.arange(time).double()[:, None] * base ** (-torch.arange(0, width, 2).double() / width)
    pairs = x.unflatten(-1, (2, -1)).transpose(-1, -2) if layout == "halves" else x.unflatten(-1, (-1, 2))
    turned = torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.ones_like(angle), angle)
    turned = torch.view_as_real(turned)
    return (turned.transpose(-1, -2) if layout == "halves" else turned).flatten(-2)


class Transformer:
    """The logits of an encoder or an encoder-decoder, from parameters by name."""

    def __init__(self, model, parameters, torch_models):
        self.model, self.p, self.torch_models = model, parameters, torch_models
        a = model["attention"]
        self.heads, self.kv_heads = model["heads"], a["kv_heads"] or model["heads"]
        self.d_key = a["d_key"] or model["d_model"] // self.heads
        self.d_value = a["d_value"] or model["d_model"] // self.heads

    def linear(self, name, x):
        return F.linear(x, self.p[name + ".weight"], self.p[name + ".bias"])

    def norm(self, name, x):
        if self.model["norm_type"] == "rms":
            return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.model["norm_epsilon"]) * self.p[name + ".weight"]
        return F.layer_norm(x, x.shape[-1:], self.p[name + ".weight"], self.p[name + ".bias"],
                            self.model["norm_epsilon"])

    def project(self, name, x, memory):
        if not self.model["attention"]["in_proj"]:
            return x, memory, memory
        weight, bias = self.p[name + ".in_proj_weight"], self.p[name + ".in_proj_bias"]
        queries, keys, values = self.heads * self.d_key, self.kv_heads * self.d_key, self.kv_heads * self.d_value
        first_key = 0 if self.model["attention"]["tie_query_key"] else queries
        parts = [(x, 0, queries), (memory, first_key, keys), (memory, first_key + keys, values)]
        return [F.linear(source, weight[first:first + count], bias[first:first + count])
                for source, first, count in parts]

    def scores(self, name, q, k):
        kind = self.model["attention"]["score"]
        if kind == "additive":
            w = self.p[name + ".score_weight"][:, None, None, :]
            return (torch.tanh(q[:, :, :, None] + k[:, :, None]) * w).sum(-1)
        if kind == "general":
            q = q @ self.p[name + ".score_weight"]
        if kind == "cosine":
            q, k = (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) for x in (q, k))
        return q @ k.transpose(-1, -2) / (math.sqrt(self.d_key) if kind in ("scaled_dot", "cosine") else 1)

    def attend(self, name, x, memory, lengths, causal, positions):
        a = self.model["attention"]
        q, k, v = self.project(name, x, memory)
        q, k, v = heads_of(q, self.heads), heads_of(k, self.kv_heads), heads_of(v, self.kv_heads)
        if positions == "rotary":
            q, k = (rotate(y, self.model["rotary"], self.model["rotary_base"]) for y in (q, k))
        k, v = (y.repeat_interleave(self.heads // self.kv_heads, 1) for y in (k, v))
        scores = self.scores(name, q, k)
        distance = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
        if positions == "alibi":
            slopes = 2.0 ** (-8 * torch.arange(1, self.heads + 1).double() / self.heads)
            scores = scores - slopes[:, None, None] * distance.abs()
        hidden = (torch.arange(k.shape[2]) >= lengths[:, None])[:, None, None, :]
        if causal:
            hidden = hidden | (distance < 0)
        weights = (scores.masked_fill(hidden, 0) if a["score"] == "linear" else
                   F.softmax(scores.masked_fill(hidden, -torch.inf), -1))
        found = (weights @ v).transpose(1, 2)
        if a["combine"] == "concat":
            found = found.flatten(2) @ self.p[name + ".out_proj.weight"].T
        else:
            found = sum(found[:, :, h] @ self.p[f"{name}.out_proj.{h}.weight"].T for h in range(self.heads))
        return found + self.p[name + ".out_proj.bias"]

    def convolve(self, name, x, lengths, causal):
        window = self.model["window"]
        x = x.masked_fill((torch.arange(x.shape[1]) >= lengths[:, None])[:, :, None], 0)
        padding = (window - 1, 0) if causal else (window // 2, window // 2)
        return F.conv1d(F.pad(x.transpose(1, 2), padding), self.p[name + ".weight"],
                        self.p[name + ".bias"]).transpose(1, 2)

    def feed_forward(self, name, x):
        hidden = self.torch_models.ACTIVATIONS[self.model["activation"]](self.linear(name + ".linear1", x))
        if self.model["gated"]:
            hidden = hidden * self.linear(name + ".gate", x)
        return self.linear(name + ".linear2", hidden)

    def sublayer(self, norm, x, f):
        return x + f(self.norm(norm, x)) if self.model["norm"] == "pre" else self.norm(norm, x + f(x))

    def stack(self, stack, x, lengths, causal, memory=None, memory_lengths=None):
        positions = self.model["positions"]
        for layer in range(self.model["layers"]):
            name = f"{stack}.layers.{layer}"
            if self.model["mixer"] == "convolution":
                x = self.sublayer(name + ".norm1", x, lambda y: self.convolve(name + ".conv", y, lengths, causal))
            else:
                x = self.sublayer(name + ".norm1", x, lambda y: self.attend(
                    name + ".self_attn", y, y, lengths, causal, positions))
            if memory is not None:
                x = self.sublayer(name + ".norm2", x, lambda y: self.attend(
                    name + ".multihead_attn", y, memory, memory_lengths, False, "none"))
            if self.model["d_ff"] > 0:
                last = ".norm2" if memory is None else ".norm3"
                x = self.sublayer(name + last, x, lambda y: self.feed_forward(name, y))
        return self.norm(stack + ".norm", x) if self.model["norm"] == "pre" else x

    def embed(self, prefix, tokens):
        x = self.p[prefix + "token_embedding.weight"][tokens]
        if self.model["positions"] == "learned":
            return x + self.p[prefix + "position_embedding.weight"][:x.shape[1]]
        return x + self.torch_models.sinusoidal(*x.shape[1:]) if self.model["positions"] == "sinusoidal" else x

    def output(self, x):
        if not self.model["output"]["hidden"]:
            return self.linear("output", x)
        hidden = self.linear("output.0", x)
        hidden = F.layer_norm(hidden, hidden.shape[-1:], self.p["output.1.weight"], self.p["output.1.bias"],
                              self.model["norm_epsilon"])
        return self.linear("output.3", F.relu(hidden))

    def __call__(self, tokens, lengths, sources, source_lengths):
        if self.model["kind"] == "encoder_decoder":
            memory = self.stack("encoder", self.embed("source_", sources), source_lengths, False)
            return self.output(self.stack("decoder", self.embed("", tokens), lengths, True, memory, source_lengths))
        x = self.stack("encoder", self.embed("", tokens), lengths, self.model["attention"]["mask"] == "causal")
        if self.model["output"]["per"] == "sequence":
            valid = (torch.arange(x.shape[1]) < lengths[:, None])[:, :, None]
            x = {"mean": lambda: (x * valid).sum(1) / lengths[:, None], "first": lambda: x[:, 0],
                 "last": lambda: x[torch.arange(len(x)), lengths - 1]}[self.model["output"]["pooling"]]()
        return self.output(x)


def run(model, parameters, batch, torch_models):
    """The logits, and the tensors by name whose gradients are asked for."""
    if model["kind"] != "recurrent":
        return Transformer(model, parameters, torch_models)(**batch), parameters
    module = torch_models.make(model, {name: tuple(x.shape) for name, x in parameters.items()}).eval()
    module.load_state_dict({name: x.detach() for name, x in parameters.items()})
    return module(batch["sources"], batch["tokens"], batch["source_lengths"]), dict(module.named_parameters())


def difference(config, tensors, torch_models):
    """What differs first, as a sentence, or None; and how far apart numbers are at most."""
    sequences = config["sequences"]
    batch = {name: torch.from_numpy(tensors[name]).long() for name in ("tokens", "lengths", "sources", "source_lengths")}
    for name in ("tokens", "sources"):
        batch[name] = batch[name].view(sequences, -1)
    parameters = {name[len("parameter."):]: torch.from_numpy(x).requires_grad_() for name, x in tensors.items()
                  if name.startswith("parameter.")}
    logits, parameters = run(config["model"], parameters, batch, torch_models)
    loss = F.cross_entropy(logits.reshape(-1, config["vocabulary"]), torch.from_numpy(tensors["labels"]).long(),
                           ignore_index=-1, label_smoothing=config["train"]["label_smoothing"])
    gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    theirs = {"loss": loss.detach()}
    for (name, parameter), gradient in zip(parameters.items(), gradients):
        theirs["gradient." + name] = torch.zeros_like(parameter) if gradient is None else gradient
    size = max(1.0, *(x.abs().max().item() for x in theirs.values()))
    worst = 0.0
    for name, expected in theirs.items():
        error = (torch.from_numpy(tensors[name]).view(expected.shape) - expected).abs().max().item() / size
        if not error <= TOLERANCE:
            return f"{name} differs from PyTorch's by {error:.3g} of the largest, more than {TOLERANCE}", error
        worst = max(worst, error)
    return None, worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--json")
    args = parser.parse_args()
    sys.path.insert(0, str(args.source / "python"))
    from thimble import safetensors_file, torch_models
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    count = findings = 0
    largest = 0.0
    for file in args.files:
        arrays, configs = safetensors_file.read(file)
        tensors = {seed: {} for seed in configs}
        for name, array in arrays.items():
            seed, _, rest = name.partition(".")
            if seed in tensors:
                tensors[seed][rest] = array
        for seed, config in configs.items():
            if not seed.isdigit():
                continue  # the checksum
            finding, worst = difference(json.loads(config), tensors[seed], torch_models)
            count, largest = count + 1, max(largest, worst)
            if finding:
                findings += 1
                print(f"FOUND: seed {seed}: {finding}\n{config}")
    report = {"architectures": count, "architectures_with_findings": findings, "largest_difference": largest,
              "tolerance": TOLERANCE, "torch": torch.__version__}
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(report, indent=2) + "\n")
    print("PyTorch:", json.dumps(report))
    return 1 if findings or not count else 0


if __name__ == "__main__":
    sys.exit(main())
