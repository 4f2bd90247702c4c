#!/usr/bin/env python3
"""Times thimble's training step against the same step in PyTorch, side by side, and prints a Markdown table.

Processes alternate (thimble, PyTorch, thimble, PyTorch, ...), so that a slow spell of the machine meets both,
and the ratio PyTorch / thimble is taken pair by pair. PyTorch (eager, float32) is tried with 1, 2, 4, ...
threads up to --threads, spinning and sleeping between parallel regions; the best median counts.
"""

import argparse
import importlib.util
import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What the PyTorch half below implements; a config that asks for anything else would not be the same step.
COMPARABLE = {
    "task.name": ["reverse"], "model.norm": ["pre", "post"], "model.activation": ["relu", "gelu", "gelu_tanh"],
    "model.positions": ["sinusoidal", "learned"], "model.dropout": [0], "model.attention.mask": ["none", "causal"],
    "model.attention.dropout": [0], "model.output.per": ["position"], "model.output.hidden": [0],
    "train.optimizer.name": ["adamw"], "train.precision": ["float32"]}


def build_model(task, model):
    import torch
    import torch.nn.functional as F
    from torch import nn

    channels, time_steps = model["d_model"], task["length"]
    activations = {"gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            pre = model["norm"] == "pre"
            layer = nn.TransformerEncoderLayer(channels, model["heads"], model["d_ff"], dropout=0.0,
                                               activation=activations.get(model["activation"], model["activation"]),
                                               norm_first=pre, batch_first=True)
            self.token_embedding = nn.Embedding(task["symbols"], channels)
            self.encoder = nn.TransformerEncoder(layer, model["layers"],
                                                 nn.LayerNorm(channels) if pre else None,
                                                 enable_nested_tensor=False)
            self.output = nn.Linear(channels, task["symbols"])
            if model["output"]["tied"]:
                nn.init.normal_(self.token_embedding.weight, std=0.02)
                self.output.weight = self.token_embedding.weight
            causal = model["attention"]["mask"] == "causal"
            mask = nn.Transformer.generate_square_subsequent_mask(time_steps) if causal else None
            self.register_buffer("mask", mask)
            if model["positions"] == "learned":
                self.positions = nn.Parameter(0.02 * torch.randn(time_steps, channels))
            else:
                frequency = 10000 ** (-torch.arange(0, channels, 2) / channels)
                angle = torch.arange(time_steps)[:, None] * frequency
                positions = torch.stack([angle.sin(), angle.cos()], dim=-1).view(time_steps, channels)
                self.register_buffer("positions", positions)

        def forward(self, tokens):
            return self.output(self.encoder(self.token_embedding(tokens) + self.positions, self.mask))

    return Model()


def torch_child(shape_file):
    """Runs in its own process: trains in PyTorch for some steps and prints their times as JSON."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    shape = json.loads(pathlib.Path(shape_file).read_text())
    task, model_config, train = (shape["config"][key] for key in ("task", "model", "train"))
    torch.set_num_threads(shape["threads"])
    torch.manual_seed(0)
    model = build_model(task, model_config)
    parameters = list(model.parameters())
    groups = [{"params": [p for p in parameters if p.dim() >= 2]},
              {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=train["optimizer"]["lr"], foreach=True,
                                  weight_decay=train["optimizer"].get("weight_decay", 0.0))

    def step():
        tokens = torch.randint(task["symbols"], (train["batch"], task["length"]))
        logits = model(tokens)
        loss = F.cross_entropy(logits.view(-1, task["symbols"]), tokens.flip(1).view(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if train["clip_norm"]:
            nn.utils.clip_grad_norm_(parameters, train["clip_norm"])
        optimizer.step()

    for _ in range(max(5, shape["steps"] // 10)):
        step()
    times = []
    for _ in range(shape["steps"]):
        start = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - start))
    blas = re.findall(r"lib[^/\s]*(?:blas|mkl_core)[^/\s]*", pathlib.Path("/proc/self/maps").read_text())
    print(json.dumps({"step_ms": {"median": statistics.median(times), "min": min(times)},
                      "torch": torch.__version__, "blas": max(blas, key=len, default="built in")}))


def fail(message):
    print(f"bench_vs_torch: {message}", file=sys.stderr)
    sys.exit(2)


def run_json(command, env=None):
    try:
        done = subprocess.run([str(part) for part in command], env=env, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)
    except OSError as error:
        fail(f"{command[0]}: {error.strerror}; build thimble first, or name it with --thimble")
    except subprocess.CalledProcessError as error:
        fail(f"{' '.join(map(str, command))}: exit status {error.returncode}")
    except json.JSONDecodeError as error:
        fail(f"{' '.join(map(str, command))}: no JSON on its standard output ({error})")


def run_torch(config, steps, threads, wait_policy):
    """One PyTorch process. Debian's OpenBLAS brings its own threads, which spinning OpenMP threads starve;
    where both are one pool, spinning wins: so the caller tries both policies."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
               MKL_NUM_THREADS=str(threads), OMP_WAIT_POLICY=wait_policy)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as shape:
        json.dump({"config": config, "steps": steps, "threads": threads}, shape)
        shape.flush()
        return run_json([sys.executable, __file__, "--torch-child", shape.name], env)


def load_config(thimble, path):
    config = run_json([thimble, "config", "show", path, "--json", "-"])
    for dotted, allowed in COMPARABLE.items():
        value = config
        for key in dotted.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value not in allowed:
            fail(f"{path}: {dotted} is {value}, but the PyTorch step here knows only {allowed}")
    return config


def torch_settings(threads):
    counts = sorted({2**i for i in range(threads.bit_length())} | {threads})
    return [(n, policy) for n in counts for policy in ("passive", "active") if n > 1 or policy == "passive"]


def run_thimble(args, path, steps):
    return run_json([args.thimble, "bench", path, "--steps", steps, "--threads", args.threads, "--json", "-"])


def compare(args, path):
    """Measures one config; returns its row of the table and the last PyTorch result."""
    def steps(ms):
        return args.steps or max(10, min(5000, math.ceil(1e3 * args.seconds / ms)))

    config = load_config(args.thimble, path)
    print(f"{path.stem}: looking for PyTorch's best setting", file=sys.stderr)
    few = min(10, args.steps or 10)
    trial = {setting: run_torch(config, few, *setting)["step_ms"]["median"]
             for setting in torch_settings(args.threads)}
    torch_steps = steps(min(trial.values()))
    thimble_steps = steps(run_thimble(args, path, few)["step_ms"]["median"])
    # Those that may be the best once more steps are taken.
    torch_ms = {setting: [] for setting in trial if trial[setting] < 1.3 * min(trial.values())}
    ours = []
    for pair in range(args.pairs):
        print(f"{path.stem}: pair {pair + 1} of {args.pairs}, {thimble_steps} and {torch_steps} steps", file=sys.stderr)
        ours.append(run_thimble(args, path, thimble_steps))
        for setting, times in torch_ms.items():
            reference = run_torch(config, torch_steps, *setting)
            times.append(reference["step_ms"]["median"])

    best = min(torch_ms, key=lambda setting: statistics.median(torch_ms[setting]))
    ratios = [torch / run["step_ms"]["median"] for run, torch in zip(ours, torch_ms[best])]
    policy = f", {best[1]}" if best[0] > 1 else ""
    ms = statistics.median(run["step_ms"]["median"] for run in ours)
    share = statistics.median(run["share_of_sgemm"] for run in ours)
    return (f"| {path.stem} | {ms:.3f} | {statistics.median(torch_ms[best]):.3f} ({best[0]}{policy}) "
            f"| {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} | {share:.2f} |"), reference


def cpu_name():
    match = re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())
    return match.group(1) if match else platform.machine()


def thimble_version(thimble):
    done = subprocess.run([thimble, "--version"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "version unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("configs", nargs="*", type=pathlib.Path, metavar="CONFIG",
                        help="default: micro, tiny, small, base and gpt2 of configs/bench")
    parser.add_argument("--thimble", default="thimble", metavar="PATH", help="default: the one on the PATH")
    parser.add_argument("--threads", metavar="K", type=int, default=len(os.sched_getaffinity(0)),
                        help="threads of thimble, and the most that PyTorch may use (default: every core)")
    parser.add_argument("--pairs", type=int, default=5, metavar="N", help="default: 5")
    parser.add_argument("--seconds", type=float, default=2, metavar="S", help="about how long a run times (default: 2)")
    parser.add_argument("--steps", type=int, metavar="N", help="timed steps of a run, in place of --seconds")
    parser.add_argument("--torch-child", metavar="SHAPE.json", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if min(args.pairs, args.threads, args.steps or 1) < 1:
        parser.error("--pairs, --threads and --steps must be at least 1")
    if importlib.util.find_spec("torch") is None:
        fail("PyTorch is missing: apt-get install python3-torch, and run this with /usr/bin/python3")
    if args.torch_child:
        return torch_child(args.torch_child)

    configs = args.configs or [ROOT / f"configs/bench/{name}.yaml" for name in ("micro", "tiny", "small", "base", "gpt2")]
    rows, references = zip(*(compare(args, path) for path in configs))
    print(f"{cpu_name()}, {os.cpu_count()} cores. thimble ({thimble_version(args.thimble)}), {args.threads} "
          f"threads; PyTorch {references[0]['torch']}, BLAS {references[0]['blas']}, "
          f"Python {platform.python_version()}. {args.pairs} pairs.\n")
    print("| shape | thimble ms | torch ms (threads) | torch / thimble | range | share of sgemm |")
    print("|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
