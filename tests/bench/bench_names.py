#!/usr/bin/env python3
"""Writes the table of names of docs/performance.md: microseconds a name at four sizes on one core and on two, what padding
would cost, and tokens that are drawn a second. Medians of interleaved runs.

usage: tests/bench/bench_names.py THIMBLE_BINARY [ROUNDS]"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- bench_names.py -->\n", "<!-- end of names -->\n"
PUBLISHED = {16: "3.0", 32: "11.4", 64: "36.8", 128: "119"}  # EEmicroGPT on one core of an Apple M5


def bench(program, *arguments, threads=1):
    done = subprocess.run([program, "bench", *arguments, "--threads", str(threads), "--json", "-", "--quiet"], check=True,
                          capture_output=True, text=True, cwd=ROOT)
    return json.loads(done.stdout)


def median_ratio(a, b):
    return statistics.median(x / y for x, y in zip(a, b))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program, rounds = os.path.realpath(sys.argv[1]), int((sys.argv + ["9"])[2])
    # Windows of a stream have 16 tokens each, as documents with all of their padding would.
    kinds = {"own": ([], 1), "padded": (["task.documents=stream", "task.long=windows"], 1), "threads": (["train.shards=4"], 2)}  # a shard is the work of one thread
    micros = {(width, kind): [] for width in PUBLISHED for kind in kinds}
    drawn, larger = [], []
    for _ in range(rounds):
        for width in PUBLISHED:
            size = [f"model.d_model={width}", f"model.d_ff={4 * width}", "train.batch=16", "--steps", "300"]
            for kind, (more, threads) in kinds.items():
                step = bench(program, "configs/microgpt.yaml", *size, *more, threads=threads)["step_ms"]["median"]
                micros[width, kind].append(1e3 * step / 16)
        size = ["model.d_model=64", "model.d_ff=256", "train.batch=64", "train.shards=4", "--steps", "300"]
        one, two = (bench(program, "configs/microgpt.yaml", *size, threads=n)["step_ms"]["median"] for n in (1, 2))
        larger.append(one / two)
        drawn.append(bench(program, "configs/shakespeare.yaml", "task.length=256", "train.schedule.warmup=1", "--steps",
                           "2")["generated_tokens_per_s"])
    rows = ("| `d_model` | µs a name | range | padded to 16 tokens / as it is | on two threads | one thread / two | published, "
            "on an Apple M5 |\n|---|---|---|---|---|---|---|\n")
    for width, published in PUBLISHED.items():
        own, padded, two = (micros[width, kind] for kind in kinds)
        rows += (f"| {width} | {statistics.median(own):.1f} | {min(own):.1f} to {max(own):.1f} | "
                 f"{median_ratio(padded, own):.2f} | {statistics.median(two):.1f} | {median_ratio(own, two):.2f} | {published} |\n")
    rows += (f"\nWith 64 names in a step, in 4 shards, and `d_model` 64, two threads are {statistics.median(larger):.2f} "
             f"({min(larger):.2f} to {max(larger):.2f}) times as fast as one.\n")
    rows += (f"\nA model with 4 layers and `d_model` 128 draws {statistics.median(drawn):,.0f} ({min(drawn):,.0f} to "
             f"{max(drawn):,.0f}) tokens a second, one text of 256 tokens.\n")
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{rows}\n{END}{rest.split(END)[1]}")
    print(rows, end="")


if __name__ == "__main__":
    main()
