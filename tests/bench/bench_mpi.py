#!/usr/bin/env python3
"""Times training steps on 1, 2 and 4 ranks of this machine, and compares them with a model of the cost.

The model: a step of R ranks takes  T / R + 4 (R - 1) a + 2 P (R - 1) / R / b  seconds, where T is a step of one rank, a the
latency of a message, b the bytes per second that a rank sends, and P the bytes of the parameters. In a step, each rank
sends every other rank its share of the gradients, of two sets of sums, and of the parameters. T, a and b are measured.
The last tables have what the model predicts for other numbers of ranks and other networks.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Names, latency of a message in seconds, and bytes per second.
NETWORKS = [("1 Gbit/s", 50e-6, 0.125e9), ("10 Gbit/s", 30e-6, 1.25e9), ("100 Gbit/s", 3e-6, 12.5e9)]
PREDICTED = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


def bench(args, config, ranks):
    """Returns the JSON of a benchmark with one thread for each rank."""
    command = [args.thimble, "bench", str(ROOT / f"configs/bench/{config}.yaml"), "--threads", "1", "--json", "-",
               "--steps", str(args.steps), f"train.shards={args.shards}"]
    launcher = [args.mpirun, *args.mpirun_options.split(), "-n", str(ranks)] if ranks > 1 else []
    done = subprocess.run(launcher + command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"bench_mpi: {config} on {ranks} ranks ended with status {done.returncode}")
    return json.loads(done.stdout)


def seconds(one, ranks, latency, rate, parameter_bytes, cores=None):
    """Returns the seconds that a step takes by the model, given those of one rank."""
    return (one / min(ranks, cores or ranks) + 4 * (ranks - 1) * latency
            + 2 * parameter_bytes * (ranks - 1) / ranks / rate)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("configs", nargs="*", default=["tiny", "small", "base"], metavar="CONFIG",
                        help="of configs/bench (default: tiny small base)")
    parser.add_argument("--thimble", default="thimble", metavar="PATH", help="built with MPI; default: the one on the PATH")
    parser.add_argument("--mpirun", default="mpirun", metavar="PATH")
    parser.add_argument("--mpirun-options", default="", metavar="OPTIONS", help="such as '--oversubscribe --bind-to none'")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], metavar="R")
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="interleaved runs of each (default: 9)")
    parser.add_argument("--steps", type=int, default=10, metavar="N", help="timed steps of a run (default: 10)")
    parser.add_argument("--shards", type=int, default=4, metavar="S", help="at least the ranks (default: 4)")
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    predictions = []

    print("| config | ranks | ms | ms by the model | measured / model | MB sent | waiting ms | efficiency |")
    print("|---|---|---|---|---|---|---|---|")
    for config in args.configs:
        runs = {ranks: [] for ranks in [1, *args.ranks]}
        for _ in range(args.rounds):
            for ranks, results in runs.items():
                results.append(bench(args, config, ranks))

        def median(ranks, key):
            return statistics.median(run[key] if key != "ms" else run["step_ms"]["median"] for run in runs[ranks])

        one = 1e-3 * median(1, "ms")
        print(f"| {config} | 1 | {1e3 * one:.3f} | | | | | |")
        for ranks in args.ranks:
            sent = median(ranks, "bytes_sent_per_step")
            parameter_bytes = sent * ranks / (ranks - 1) / 2
            latency, rate = 1e-6 * median(ranks, "latency_us"), 1e6 * median(ranks, "bandwidth_mb_per_s")
            measured = 1e-3 * median(ranks, "ms")
            model = seconds(one, ranks, latency, rate, parameter_bytes, cores)
            note = f" ({cores} cores)" if ranks > cores else ""
            print(f"| {config} | {ranks}{note} | {1e3 * measured:.3f} | {1e3 * model:.3f} | {measured / model:.2f} "
                  f"| {1e-6 * sent:.2f} | {median(ranks, 'wait_ms'):.3f} | {one / ranks / measured:.2f} |", flush=True)
        batch = round(one * median(1, "sequences_per_s"))
        predictions.append((config, one, parameter_bytes, batch))

    print(f"\nOne thread for each rank, {cores} cores, median of {args.rounds} interleaved runs.\n")
    def table(title, value):
        print(f"{title}\n\n| config | network | " + " | ".join(str(ranks) for ranks in PREDICTED) + " |")
        print("|---" * (2 + len(PREDICTED)) + "|")
        for config, one, parameter_bytes, batch in predictions:
            for name, latency, rate in NETWORKS:
                values = (value(one, ranks, (latency, rate, parameter_bytes), batch) for ranks in PREDICTED)
                print(f"| {config} | {name} | " + " | ".join(values) + " |")
        print()

    table("Times as fast as one rank, at the batch of the config; - : more ranks than sequences",
          lambda one, ranks, network, batch:
          f"{one / seconds(one, ranks, *network):.1f}" if ranks <= batch else "-")
    table("Efficiency if every rank has a batch of that size",
          lambda one, ranks, network, batch: f"{one / seconds(ranks * one, ranks, *network):.2f}")
    print("Latencies: " + ", ".join(f"{name} {1e6 * latency:.0f} µs" for name, latency, _ in NETWORKS))


if __name__ == "__main__":
    main()
