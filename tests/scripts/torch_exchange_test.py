"""Weights go from thimble to PyTorch and back: logits and attention agree within 1e-5.

Usage: torch_exchange_test.py THIMBLE_BINARY SOURCE_DIR
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import yaml

thimble, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(source / "scripts"))
import safetensors_file  # noqa: E402
from from_torch import save  # noqa: E402
from to_torch import Model, load  # noqa: E402

torch.set_num_threads(1)  # spinning threads would starve thimble
TOLERANCE = 1e-5
TRAIN = "{steps: 30, batch: 32, threads: 1, optimizer: {name: adam, lr: 3e-3}}"
DATA = "{train: 500, validation: 10, test: 20}"
CONFIGS = {
    "post": f"""task: {{name: reverse, symbols: 7, length: 6}}
data: {DATA}
model: {{d_model: 12, heads: 3, layers: 2, d_ff: 20, norm: post, activation: relu, positions: sinusoidal,
  output: {{per: position, hidden: 8}}}}
train: {TRAIN}
""",
    "pre": f"""task: {{name: copy, symbols: 7, length: 6, min_length: 3}}
data: {DATA}
model: {{d_model: 12, heads: 2, layers: 2, d_ff: 20, norm: pre, activation: gelu, positions: learned, dropout: 0.1,
  attention: {{mask: causal, dropout: 0.1}}, output: {{per: position}}}}
train: {TRAIN}
""",
    "sequence": f"""task: {{name: majority, symbols: 5, length: 7}}
data: {DATA}
model: {{d_model: 12, heads: 1, layers: 1, d_ff: 20, norm: pre, activation: gelu_tanh, positions: none,
  output: {{per: sequence, pooling: mean}}}}
train: {TRAIN}
"""}


def run(*arguments):
    done = subprocess.run([thimble, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"thimble {' '.join(map(str, arguments))}: {done.stderr}"
    return done.stdout


def compare(name, model, tokens, *given):
    """thimble's and PyTorch's view of one sequence with the same weights."""
    report = json.loads(run("inspect", *given, "--input", " ".join(tokens), "--json", "-"))
    assert report["tokens"] == tokens, report["tokens"]
    numbers = torch.tensor([[report["vocabulary"].index(token) for token in tokens]])
    with torch.no_grad():
        logits, attention = model(numbers)[0], model.attention(numbers)[:, 0]
    logits = logits if logits.dim() == 2 else logits[None]
    for what, ours, theirs in (("logits", report["logits"], logits),
                               ("attention", report["attention"], attention)):
        ours = torch.tensor(ours, dtype=theirs.dtype)
        assert ours.shape == theirs.shape, f"{name}: {what} of shape {ours.shape}, PyTorch's {theirs.shape}"
        worst = (ours - theirs).abs().max().item()
        assert worst < TOLERANCE, f"{name}: {what} differ by {worst}"
    assert attention.std() > 1e-3, f"{name}: the attention is uniform, which shows nothing"
    named = [report["vocabulary"][token] for token in logits.argmax(-1)]
    assert report["predictions"] == named, f"{name}: predictions {report['predictions']}, PyTorch's {named}"


def randomise(model, generator):
    """Every parameter random, biases and norms too: a default of 0 or 1 would hide mistakes."""
    for name, parameter in model.named_parameters():
        norm = parameter.dim() == 1 and name.endswith("weight")
        parameter.data = 0.4 * torch.randn(parameter.shape, generator=generator) + (1.0 if norm else 0.0)


def exchange(name, work):
    config = work / f"{name}.yaml"
    config.write_text(CONFIGS[name])
    run("train", config, "--out", work / name, "--quiet")
    checkpoint = work / name / "checkpoints" / "final.safetensors"
    model = load(checkpoint)
    vocabulary = json.loads(run("tasks", "--config", config, "--json", "-"))["tokens"]
    sequence = [vocabulary[i % len(vocabulary)] for i in (1, 4, 0, 3, 3, 2)]
    compare(f"{name}, thimble's weights", model, sequence, work / name)
    compare(f"{name}, a shorter sequence", model, sequence[:3], work / name)

    # A model of PyTorch's own, whose author has other names for things.
    randomise(model, torch.Generator().manual_seed(3))
    state = {"buffer": torch.zeros(2), "steps": torch.tensor(5)}
    state.update({key.replace("encoder.", "transformer.", 1): value for key, value in model.state_dict().items()})
    torch.save({"state_dict": state}, work / "model.pt")
    weights = work / f"{name}.safetensors"
    subprocess.run([sys.executable, source / "scripts" / "from_torch.py", work / "model.pt", weights,
                    "--rename", "transformer=encoder", "--rename", "buffer=", "--rename", "steps="], check=True)
    compare(f"{name}, PyTorch's weights", model, sequence, "--config", config, "--weights", weights)
    run("eval", "--config", config, "--weights", weights, "--split", "test")
    save(model.state_dict(), work / "again.safetensors")
    assert (work / "again.safetensors").read_bytes() == weights.read_bytes(), "save() and the program differ"
    return checkpoint, weights, config


def refused(pattern, *command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 2 and pattern in done.stderr, f"{command}: {done.returncode} {done.stderr}"


def main():
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        for name in CONFIGS:
            checkpoint, weights, config = exchange(name, work)
        # As a program, to_torch writes what torch.load and load_state_dict take.
        to_torch, from_torch = (source / "scripts" / f"{way}_torch.py" for way in ("to", "from"))
        subprocess.run([sys.executable, to_torch, checkpoint, work / "state.pt"], check=True)
        model = load(checkpoint)
        Model(model.config, {key: tuple(value.shape) for key, value in model.state_dict().items()}).load_state_dict(
            torch.load(work / "state.pt"))
        # Bad files are refused in one line.
        refused("has no config", sys.executable, to_torch, weights, work / "no.pt")
        refused("No such file", sys.executable, from_torch, work / "missing.pt", work / "no.safetensors")
        torch.save({"count": torch.tensor(3)}, work / "odd.pt")
        refused("not weights", sys.executable, from_torch, work / "odd.pt", work / "no.safetensors")
        torch.save({"a.w": torch.ones(1), "b.w": torch.ones(1)}, work / "twice.pt")
        refused("two tensors", sys.executable, from_torch, work / "twice.pt", work / "no.safetensors",
                "--rename", "a=b")
        assert not (work / "no.pt").exists() and not (work / "no.safetensors").exists()
        # What PyTorch's encoder cannot be is named.
        for key, value in [("attention.score", "dot"), ("attention.kv_heads", 1), ("norm_type", "rms"),
                           ("positions", "rotary"), ("d_ff", 0)]:
            refused(f"model.{key} {value}" if value else "no layers without a feed-forward net", sys.executable,
                    to_torch, changed(checkpoint, key, value, work), work / "no.pt")
        assert not (work / "no.pt").exists()
        # Weights that do not fit are named.
        refused("encoder.layers.0.linear1.weight has shape (20, 12), the model needs (21, 12)", thimble, "inspect",
                "model.d_ff=21", "--config", config, "--weights", weights)
        refused("tensor surplus has no place in this model", thimble, "eval", "--config", config, "--weights",
                surplus(weights, work))
    print("torch_exchange_test: ok")


def changed(checkpoint, key, value, work):
    """The checkpoint with another value in its config."""
    arrays, metadata = safetensors_file.read(checkpoint)
    config = yaml.safe_load(metadata["config"])
    section = config["model"]
    *parents, last = key.split(".")
    for parent in parents:
        section = section[parent]
    section[last] = value
    safetensors_file.write(work / "changed.safetensors", arrays, {**metadata, "config": yaml.dump(config)})
    return work / "changed.safetensors"


def surplus(weights, work):
    arrays, _ = safetensors_file.read(weights)
    safetensors_file.write(work / "surplus.safetensors", {**arrays, "surplus": arrays["output.bias"]})
    return work / "surplus.safetensors"


if __name__ == "__main__":
    main()
