#!/usr/bin/env python3
"""Writes the table of names of docs/performance.md: microseconds a name at four sizes on one core, what padding would
cost, and tokens that are drawn a second. Medians of interleaved runs.

usage: scripts/bench_names.py THIMBLE_BINARY [ROUNDS]"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/performance.md"
BEGIN, END = "<!-- bench_names.py -->\n", "<!-- end of names -->\n"
PUBLISHED = {16: "3.0", 32: "11.4", 64: "36.8", 128: "119"}  # EEmicroGPT on one core of an Apple M5


def bench(program, *arguments):
    done = subprocess.run([program, "bench", *arguments, "--threads", "1", "--json", "-", "--quiet"], check=True,
                          capture_output=True, text=True, cwd=ROOT)
    return json.loads(done.stdout)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program, rounds = os.path.realpath(sys.argv[1]), int((sys.argv + ["9"])[2])
    micros = {(width, padded): [] for width in PUBLISHED for padded in (False, True)}
    drawn = []
    for _ in range(rounds):
        for width in PUBLISHED:
            size = [f"model.d_model={width}", f"model.d_ff={4 * width}", "train.batch=16", "--steps", "300"]
            for padded in (False, True):
                # Windows of a stream have 16 tokens each, as documents with all of their padding would.
                more = ["task.documents=stream", "task.long=windows"] if padded else []
                micros[width, padded].append(1e3 * bench(program, "configs/microgpt.yaml", *size, *more)["step_ms"]["median"] / 16)
        drawn.append(bench(program, "configs/shakespeare.yaml", "task.length=256", "train.schedule.warmup=1", "--steps",
                           "2")["generated_tokens_per_s"])
    rows = "| `d_model` | µs a name | range | padded to 16 tokens / as it is | published, on an Apple M5 |\n|---|---|---|---|---|\n"
    for width, published in PUBLISHED.items():
        own, padded = micros[width, False], micros[width, True]
        ratios = [b / a for a, b in zip(own, padded)]
        rows += (f"| {width} | {statistics.median(own):.1f} | {min(own):.1f} to {max(own):.1f} | "
                 f"{statistics.median(ratios):.2f} | {published} |\n")
    rows += (f"\nA model with 4 layers and `d_model` 128 draws {statistics.median(drawn):,.0f} ({min(drawn):,.0f} to "
             f"{max(drawn):,.0f}) tokens a second, one text of 256 tokens.\n")
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{rows}\n{END}{rest.split(END)[1]}")
    print(rows, end="")


if __name__ == "__main__":
    main()
