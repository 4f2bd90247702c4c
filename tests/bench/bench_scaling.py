#!/usr/bin/env python3
"""Times a training step against sequence length, width and batch, and prints Markdown tables.

Everything else stays as in configs/bench/tiny.yaml; heads keep 16 channels and the feed-forward net is four times as
wide as the model. The last two columns say how much time and how many operations of matrix products grew.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SWEEPS = {
    "length": [{"task.length": n} for n in (16, 32, 64, 128, 256, 512)],
    "d_model": [{"model.d_model": n, "model.heads": n // 16, "model.d_ff": 4 * n}
                for n in (32, 64, 128, 256, 512)],
    "batch": [{"train.batch": n} for n in (8, 16, 32, 64, 128, 256)],
}


def bench(args, settings):
    """The best of a few runs: what the machine does meanwhile can only add time."""
    command = [args.thimble, "bench", str(ROOT / "configs/bench/tiny.yaml"), "--threads", str(args.threads),
               *(f"{key}={value}" for key, value in settings.items()), "--json", "-"]
    first = json.loads(subprocess.run(command + ["--steps", "5"], check=True, stdout=subprocess.PIPE).stdout)
    steps = max(5, min(1000, int(500 * args.seconds / first["step_ms"]["median"])))
    runs = [json.loads(subprocess.run(command + ["--steps", str(steps)], check=True, stdout=subprocess.PIPE).stdout)
            for _ in range(3)]
    return min(runs, key=lambda run: run["step_ms"]["median"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweeps", nargs="*", metavar="SWEEP", help=f"of {', '.join(SWEEPS)} (default: all)")
    parser.add_argument("--thimble", default="thimble", metavar="PATH", help="default: the one on the PATH")
    parser.add_argument("--threads", metavar="K", type=int, default=len(os.sched_getaffinity(0)),
                        help="default: every core")
    parser.add_argument("--seconds", type=float, default=1, metavar="S", help="about how long a run times (default: 1)")
    args = parser.parse_args()
    unknown = [name for name in args.sweeps if name not in SWEEPS]
    if unknown:
        parser.error(f"no sweep {unknown[0]}; there are {', '.join(SWEEPS)}")

    for name in args.sweeps or SWEEPS:
        print(f"| {name} | ms | GFLOP | GFLOP/s | time against the row above | FLOPs against it |")
        print("|---|---|---|---|---|---|")
        last = None
        for settings in SWEEPS[name]:
            run = bench(args, settings)
            ms, rate = run["step_ms"]["median"], run["gflops"]
            work = 1e-3 * ms * rate
            growth = f"{ms / last[0]:.2f} | {work / last[1]:.2f}" if last else "|"
            print(f"| {next(iter(settings.values()))} | {ms:.3f} | {work:.3f} | {rate:.0f} | {growth} |", flush=True)
            last = ms, work
        print()
    print(f"{args.threads} threads, {platform.machine()}")


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(f"bench_scaling: {error.filename}: no such program; build thimble first, or name it with --thimble")
    except subprocess.CalledProcessError as error:
        sys.exit(f"bench_scaling: exit status {error.returncode}: {' '.join(error.cmd)}")
