"""microgpt and nanoGPT's model for Shakespeare, trained in float64, have the losses of independent PyTorch programs: 200
steps within 1e-10, from the same weights on the same texts. Usage: torch_text_test.py THIMBLE_BINARY SOURCE_DIR"""

import json
import math
import os
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional

thimble, source = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
sys.path += [f"{source}/python", f"{source}/tests/fixtures"]
import fixture_microgpt
from thimble.safetensors_file import read

torch.set_num_threads(1)
os.chdir(tempfile.mkdtemp())
STEPS = 200


def run(*arguments):
    done = subprocess.run([thimble, *arguments, "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, f"thimble {' '.join(arguments)}: {done.stderr}"


def trained(name, *keys):
    """Trains a config; returns its initial weights by name, the loss of each step, and what `tasks` shows of it."""
    config = [f"{source}/configs/{name}.yaml", "train.precision=float64", "train.threads=1", *keys]
    # A rate that changes nothing leaves the initial weights.
    run("train", *config, "train.steps=1", "train.optimizer.lr=1e-300", "train.schedule.final=0",
        "train.schedule.warmup=0", "--out", f"{name}0")
    run("train", *config, f"train.steps={STEPS}", "--out", name)
    run("tasks", "--config", f"{name}/config.yaml", "--split", "train", "--examples", str(STEPS), "--json",
        "tasks.json")
    arrays, _ = read(f"{name}0/checkpoints/final.safetensors")
    weights = {key: torch.tensor(value, requires_grad=True) for key, value in arrays.items()
               if not key.startswith("optimizer.")}
    losses = [row["loss"] for row in map(json.loads, open(f"{name}/metrics.jsonl")) if row.get("split") == "train"]
    assert len(losses) == STEPS
    with open("tasks.json", encoding="utf-8") as file:
        return weights, losses, json.load(file)


def compare(name, own, losses):
    worst = max(abs(a - b) for a, b in zip(own, losses))
    assert losses[-1] < losses[0] - 0.3, f"{name}: nothing was learned"
    assert worst < 1e-10, f"{name}: losses differ by {worst}"
    print(f"torch_text_test: {name}: losses differ by at most {worst:.1e}")


def microgpt():
    named, losses, tasks = trained("microgpt")
    documents = [e["input"] + e["target"][-1:] for e in tasks["examples"]]
    assert len(documents) == STEPS
    layer = "encoder.layers.0."
    projections = named[layer + "self_attn.in_proj_weight"]
    w = {"wte": named["token_embedding.weight"], "wpe": named["position_embedding.weight"],
         "head": named["output.weight"], "wo": named[layer + "self_attn.out_proj.weight"],
         "fc1": named[layer + "linear1.weight"], "fc2": named[layer + "linear2.weight"]}
    weights = [*w.values(), projections]
    assert sum(p.numel() for p in weights) == sum(p.numel() for p in named.values()) == 4192
    m, v = ([torch.zeros_like(p) for p in weights] for _ in range(2))
    own = []
    for t, document in enumerate(documents):
        loss = fixture_microgpt.loss_of(dict(w, **dict(zip(("wq", "wk", "wv"), projections.chunk(3)))), document)
        own.append(loss.item())
        fixture_microgpt.update(weights, torch.autograd.grad(loss, weights), m, v, t, STEPS)
    compare("microgpt", own, losses)


def philox(key, counter):
    """Philox4x32-10 (Salmon et al. 2011): four words of a 64-bit key and four words of a counter."""
    k, c, mask = [key & 0xFFFFFFFF, key >> 32], list(counter), 0xFFFFFFFF
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & mask, a >> 32 ^ c[3] ^ k[1], a & mask]
        k = [k[0] + 0x9E3779B9 & mask, k[1] + 0xBB67AE85 & mask]
    return c


def drawn(seed, index, n):
    """A number below n, of the stream that draws the places of windows, which is the third."""
    words = philox(seed, [index & 0xFFFFFFFF, index >> 32, 0, 2 << 24])
    return (words[0] + (words[1] << 32)) * n >> 64


def nanogpt_logits(w, tokens, layers, heads):
    """The logits of nanoGPT's model (B, T, V) without biases and dropout, its output tied to its embedding."""
    batch, length = tokens.shape
    x = w["token_embedding.weight"][tokens] + w["position_embedding.weight"][:length]
    width = x.shape[-1]
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    norm = lambda x, name: functional.layer_norm(x, (width,), w[f"{name}.weight"])
    for i in range(layers):
        layer = f"encoder.layers.{i}"
        q, k, v = ((norm(x, f"{layer}.norm1") @ w[f"{layer}.self_attn.in_proj_weight"].T)
                   .view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // heads)
        z = torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ v
        x = x + z.transpose(1, 2).reshape(batch, length, width) @ w[f"{layer}.self_attn.out_proj.weight"].T
        hidden = functional.gelu(norm(x, f"{layer}.norm2") @ w[f"{layer}.linear1.weight"].T)
        x = x + hidden @ w[f"{layer}.linear2.weight"].T
    return norm(x, "encoder.norm") @ w["token_embedding.weight"].T


def shakespeare(batch=12, length=64, layers=4, seed=42, warmup=100, rate=1e-3, final=1e-4):
    named, losses, tasks = trained("shakespeare", "train.evaluate_every=0")
    scaled = [p.std().item() for name, p in named.items() if name.endswith(("out_proj.weight", "linear2.weight"))]
    others = [p.std().item() for name, p in named.items() if name.endswith(("in_proj_weight", "linear1.weight"))]
    assert all(abs(std * math.sqrt(2 * layers) / 0.02 - 1) < 0.02 for std in scaled), scaled
    assert all(abs(std / 0.02 - 1) < 0.02 for std in others), others
    assert not any("bias" in name or name.startswith("output") for name in named), list(named)
    ids = {token: i for i, token in enumerate(tasks["tokens"])}
    with open(f"{source}/configs/data/play.txt", encoding="utf-8") as file:
        text = torch.tensor([ids["⏎" if c == "\n" else "␣" if c == " " else c] for c in file.read()])
    text = text[:len(text) * 9 // 10]
    matrices = [p for p in named.values() if p.dim() > 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                   {"params": [p for p in named.values() if p.dim() == 1], "weight_decay": 0.0}],
                                  betas=(0.9, 0.99))
    own = []
    for t in range(STEPS):
        places = [drawn(seed, t * batch + i, len(text) - length) for i in range(batch)]
        windows = torch.stack([text[at:at + length + 1] for at in places])
        logits = nanogpt_logits(named, windows[:, :-1], layers, 4)
        loss = functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        own.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(named.values(), 1.0)
        u = (t - warmup) / (STEPS - warmup)
        for group in optimizer.param_groups:
            group["lr"] = rate * t / warmup if t < warmup else final + (rate - final) * (1 + math.cos(math.pi * u)) / 2
        optimizer.step()
    compare("shakespeare", own, losses)


microgpt()
shakespeare()
print("torch_text_test: ok")
