#!/usr/bin/env python3
"""Compares losses and gradients of random models, which architecture_fuzz wrote, with PyTorch's in float64.

Usage: architecture_torch.py SOURCE_DIR [--json FILE] FILE.safetensors...   The status is 1 if one differs.

The models are those of python/thimble/torch_models.py, which are written out in PyTorch's functions.
"""

import argparse
import json
import pathlib
import sys

import torch
import torch.nn.functional as F

TOLERANCE = 1e-9  # of the largest gradient of a model, or of 1


def run(model, parameters, batch, torch_models):
    """The logits, and the parameters by name whose gradients are asked for."""
    module = torch_models.make(model, {name: tuple(x.shape) for name, x in parameters.items()}).eval()
    module.load_state_dict(parameters)
    inputs = ((batch["tokens"], batch["lengths"]) if model["kind"] == "encoder" else
              (batch["sources"], batch["tokens"], batch["source_lengths"]))
    return module(*inputs), dict(module.named_parameters())


def difference(config, tensors, torch_models):
    """What differs first, as a sentence, or None; and how far apart numbers are at most."""
    sequences = config["sequences"]
    batch = {name: torch.from_numpy(tensors[name]).long() for name in ("tokens", "lengths", "sources", "source_lengths")}
    for name in ("tokens", "sources"):
        batch[name] = batch[name].view(sequences, -1)
    parameters = {name[len("parameter."):]: torch.from_numpy(x) for name, x in tensors.items()
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
