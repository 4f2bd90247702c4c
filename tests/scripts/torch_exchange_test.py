"""Weights of every kind of model go from thimble to PyTorch and back: logits and attention agree within 1e-5.

Usage: torch_exchange_test.py THIMBLE_BINARY SOURCE_DIR
"""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
import yaml

thimble, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(source / "python"))
from thimble import from_torch, safetensors_file, to_torch  # noqa: E402

torch.set_num_threads(1)  # spinning threads would starve thimble
TOLERANCE = 1e-5
HEAD = """data: {train: 200, validation: 10, test: 20}
train: {steps: 20, batch: 32, threads: 1, optimizer: {name: adam, lr: 3e-3}}
"""
CONFIGS = {
    "post": """task: {name: reverse, symbols: 7, length: 6}
model: {d_model: 12, heads: 3, layers: 2, d_ff: 20, norm: post, activation: relu, positions: sinusoidal,
  norm_epsilon: 0.1, output: {per: position, hidden: 8}}
""",
    "pre": """task: {name: copy, symbols: 7, length: 6, min_length: 3}
model: {d_model: 12, heads: 2, layers: 2, d_ff: 20, norm: pre, activation: gelu, positions: learned, dropout: 0.1,
  attention: {mask: causal, dropout: 0.1, kv_heads: 2, d_key: 6}, output: {per: position}}
""",
    "sequence": """task: {name: majority, symbols: 5, length: 7}
model: {d_model: 12, heads: 1, layers: 1, d_ff: 20, norm: pre, activation: gelu_tanh, positions: none,
  output: {per: sequence, pooling: mean}}
""",
    "translate_pre": """task: {name: reverse, symbols: 7, length: 6, min_length: 3}
model: {kind: encoder_decoder, d_model: 12, heads: 2, layers: 2, d_ff: 20, norm: pre, activation: silu,
  norm_epsilon: 0.01,
  positions: learned, dropout: 0.1, attention: {dropout: 0.1}, output: {per: next}}
""",
    "translate_post": """task: {name: copy, symbols: 7, length: 6}
model: {kind: encoder_decoder, d_model: 12, heads: 3, layers: 2, d_ff: 20, norm: post, activation: tanh,
  positions: sinusoidal, output: {per: next, hidden: 8}}
"""}
for score in ("additive", "general", "dot", "scaled_dot", "cosine", "linear", "none"):
    CONFIGS[f"recurrent_{score}"] = f"""task: {{name: reverse, symbols: 7, length: 6, min_length: 3}}
model: {{kind: recurrent, d_model: 12, dropout: 0.1, attention: {{score: {score}}}, output: {{per: next}}}}
"""


def run(*arguments):
    done = subprocess.run([thimble, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"thimble {' '.join(map(str, arguments))}: {done.stderr}"
    return done.stdout


def pytorch(model, report):
    """Logits and attentions, in the report's order, of a model of PyTorch for the sequence of a report."""
    numbers = {name: torch.tensor([[report["vocabulary"].index(token) for token in report[name]]])
               for name in ("source", "tokens") if name in report}
    with torch.no_grad():
        logits, weights = model(*numbers.values())[0], model.attention(*numbers.values())
    if "source" in numbers:
        return logits, [weights[stack][int(index), 0] for stack, index in
                        (each["name"].split(".") for each in report.get("attentions", []))]
    return (logits if logits.dim() == 2 else logits[None]), weights[:, 0]


def compare(name, model, tokens, *given):
    """thimble's and PyTorch's view of one sequence with the same weights."""
    report = json.loads(run("trace", *given, " ".join(tokens), "--json", "-"))
    assert report["source" if "source" in report else "tokens"] == tokens, report["tokens"]
    logits, attentions = pytorch(model, report)
    assert len(report["attention"]) == len(attentions), f"{name}: {len(report['attention'])} attentions"
    for what, ours, theirs in (("logits", report["logits"], logits),
                               *(("attention", *both) for both in zip(report["attention"], attentions))):
        ours = torch.tensor(ours, dtype=theirs.dtype)
        assert ours.shape == theirs.shape, f"{name}: {what} of shape {ours.shape}, PyTorch's {theirs.shape}"
        worst = (ours - theirs).abs().max().item()
        assert worst < TOLERANCE, f"{name}: {what} differ by {worst}"
        assert theirs.numel() < 2 or theirs.std() > 1e-3, f"{name}: {what} all equal, which shows nothing"
    named = [report["vocabulary"][token] for token in logits.argmax(-1)]
    assert report["predictions"] == named, f"{name}: predictions {report['predictions']}, PyTorch's {named}"
    return report


def randomise(model, generator):
    """Every parameter random, biases and norms too: a default of 0 or 1 would hide mistakes."""
    for name, parameter in model.named_parameters():
        norm = parameter.dim() == 1 and name.endswith("weight")
        parameter.data = 0.4 * torch.randn(parameter.shape, generator=generator) + (1.0 if norm else 0.0)


def exchange(name, work):
    config = work / f"{name}.yaml"
    config.write_text(HEAD + CONFIGS[name])
    run("train", config, "--out", work / name, "--quiet")
    checkpoint = work / name / "checkpoints" / "final.safetensors"
    model = to_torch.load(checkpoint)
    vocabulary = json.loads(run("tasks", "--config", config, "--json", "-"))["tokens"]
    sequence = [vocabulary[i] for i in (1, 4, 0, 3, 3, 2)]
    compare(f"{name}, thimble's weights", model, sequence, work / name)
    if hasattr(model, "decoder"):
        padding_changes_nothing(name, model)

    # A model of PyTorch's own, whose author has other names for things.
    randomise(model, torch.Generator().manual_seed(3))
    if hasattr(model, "decoder"):
        dict(model.named_parameters())[[*model.state_dict()][-1]].data[-1] = -9.0  # write on, without an end
    state = {"buffer": torch.zeros(2), "steps": torch.tensor(5)}
    state.update({f"transformer.{key}" if key.startswith(("encoder.", "decoder.")) else key: value
                  for key, value in model.state_dict().items()})
    torch.save({"state_dict": state}, work / "model.pt")
    weights = work / f"{name}.safetensors"
    rules = ["transformer.encoder=encoder", "transformer.decoder=decoder", "buffer=", "steps="]
    given = [str(work / "model.pt"), str(weights), *(part for rule in rules for part in ("--rename", rule))]
    from_torch.main(given)
    compare(f"{name}, PyTorch's weights", model, sequence, "--config", config, "--weights", weights)
    report = compare(f"{name}, a shorter sequence", model, sequence[:3], "--config", config, "--weights", weights)
    assert len(report["tokens"]) > 3 or "source" not in report, f"{name}: the decoder reads {report['tokens']}, which shows little"
    from_torch.save(model.state_dict(), work / "again.safetensors")
    assert (work / "again.safetensors").read_bytes() == weights.read_bytes(), "save() and the program differ"
    return checkpoint, weights, config


def padding_changes_nothing(name, model):
    """A source has the same logits beside a longer one, its length given."""
    sources, tokens = torch.tensor([[1, 4, 0, 3], [2, 2, 5, 5]]), torch.tensor([[1, 0, 2], [3, 1, 1]])
    with torch.no_grad():
        together = model(sources, tokens, torch.tensor([4, 2]))
        alone = [model(sources[:1], tokens[:1]), model(sources[1:, :2], tokens[1:])]
    worst = (together - torch.cat(alone)).abs().max().item()
    assert worst < TOLERANCE, f"{name}: padding changes logits by {worst}"


def refused(pattern, program, *arguments):
    """main() of to_torch or from_torch ends with status 2 and one line that has the pattern."""
    messages, status = io.StringIO(), 0
    with contextlib.redirect_stderr(messages):
        try:
            program.main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code
    text = messages.getvalue()
    assert status == 2 and pattern in text and text.count("\n") == 1, f"{pattern}: status {status}, {text}"


def thimble_refuses(pattern, *arguments):
    done = subprocess.run([thimble, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 2 and pattern in done.stderr, f"{arguments}: {done.returncode} {done.stderr}"


def programs(checkpoint, work):
    """As a program, to_torch writes what torch.load and load_state_dict take, and both end with their status."""
    commands = [[sys.executable, "-m", f"thimble.{way}_torch"] for way in ("to", "from")]
    os.environ["PYTHONPATH"] = str(source / "python")
    subprocess.run([*commands[0], checkpoint, work / "state.pt"], check=True)
    subprocess.run([*commands[1], work / "state.pt", work / "state.safetensors"], check=True)
    arrays, _ = safetensors_file.read(checkpoint)
    back, _ = safetensors_file.read(work / "state.safetensors")
    assert back and all((back[name] == arrays[name]).all() for name in back)
    done = subprocess.run([*commands[0], work / "none", work / "no.pt"], capture_output=True, text=True)
    assert done.returncode == 2 and "No such file" in done.stderr and "Traceback" not in done.stderr, done.stderr


def bad_files(weights, work):
    no_pt, no_weights = work / "no.pt", work / "no.safetensors"
    refused("has no config", to_torch, weights, no_pt)
    refused("No such file", from_torch, work / "missing.pt", no_weights)
    (work / "text").write_text("hello")
    refused("is not a safetensors file", to_torch, work / "text", no_pt)
    refused("torch.load: ", from_torch, work / "text", no_weights)
    for state, pattern in (({"count": torch.tensor(3)}, "not weights"),
                           ({"weights": {"w": torch.ones(1)}, "epoch": 3}, "weights: is a dict, not a tensor"),
                           (torch.nn.Linear(2, 2), "holds a Linear, not a state dict")):
        torch.save(state, work / "odd.pt")
        refused(pattern, from_torch, work / "odd.pt", no_weights)
    torch.save({"a.w": torch.ones(1), "b.w": torch.ones(1)}, work / "twice.pt")
    refused("two tensors", from_torch, work / "twice.pt", no_weights, "--rename", "a=b")
    assert not no_pt.exists() and not no_weights.exists()


def contradictions(checkpoint, work):
    """Tensors and config that contradict each other: one line."""
    for values in ({"layers": 3}, {"layers": 1}, {"bias": False}, {"gated": True}, {"attention.d_key": 5}, {"norm": "post"},
                   {"positions": "none"}, {"output.hidden": 4}, {"mixer": "convolution"}, {"kind": "encoder_decoder"}):
        refused("not those of its config", to_torch, changed(checkpoint, values, work), work / "no.pt")
    assert not (work / "no.pt").exists()


def older_config(checkpoint, work):
    """Keys that a checkpoint was written before have their defaults."""
    keys = ["norm_epsilon", "norm_weight", "norm_embedding", "norm_final", "bias", "rotary", "rotary_base",
            "attention.in_proj", "output.tied"]
    older = to_torch.load(changed(checkpoint, dict.fromkeys(keys), work))
    tokens = torch.tensor([[1, 4, 0, 3]])
    assert (older(tokens) == to_torch.load(checkpoint)(tokens)).all()


def changed(checkpoint, values, work):
    """The checkpoint with other values in its config, without the keys whose value is None."""
    arrays, metadata = safetensors_file.read(checkpoint)
    config = yaml.safe_load(metadata["config"])
    for key, value in values.items():
        *parents, last = key.split(".")
        section = config["model"]
        for parent in parents:
            section = section[parent]
        assert last in section, f"a config has no model.{key}"
        section[last] = value
        if value is None:
            del section[last]
    safetensors_file.write(work / "changed.safetensors", arrays, {**metadata, "config": yaml.dump(config)})
    return work / "changed.safetensors"


def surplus(weights, work):
    arrays, _ = safetensors_file.read(weights)
    safetensors_file.write(work / "surplus.safetensors", {**arrays, "surplus": arrays["output.bias"]})
    return work / "surplus.safetensors"


def main():
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        checkpoints = {}
        for name in CONFIGS:
            checkpoints[name], weights, config = exchange(name, work)
        programs(checkpoints["pre"], work)
        bad_files(weights, work)
        contradictions(checkpoints["pre"], work)
        older_config(checkpoints["pre"], work)
        # Weights that do not fit are named.
        pre = ["--config", work / "pre.yaml", "--weights", work / "pre.safetensors"]
        run("eval", *pre, "--split", "test")
        thimble_refuses("encoder.layers.0.linear1.weight has shape (20, 12), the model requires (21, 12)", "inspect",
                        "model.d_ff=21", *pre)
        thimble_refuses("unexpected tensor surplus", "eval", *pre[:3], surplus(pre[3], work))
    print("torch_exchange_test: ok")


if __name__ == "__main__":
    main()
