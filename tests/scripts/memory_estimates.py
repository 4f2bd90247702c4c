#!/usr/bin/env python3
"""The memory that `thimble config cost` announces for training, over the most that it has in memory at once, for 32
configs. memory_test.sh tries a few of them.

Usage: memory_estimates.py THIMBLE PEAK_MEMORY SOURCE_DIR [--docs PAGE] [NUMBER...]
  PEAK_MEMORY: the program tests/peak_memory
  --docs PAGE: writes the table between the markers of that page
  NUMBER: only these configs, from 1
Exit status 1 if an estimate is not within 0.9 and 1.3 of the peak."""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

LOW, HIGH = 0.9, 1.3
FEW = {"train.steps": 2, "train.schedule.warmup": 0, "train.evaluate_every": 1, "train.checkpoint_every": 1,
       "train.threads": 2, "data.train": 3000, "data.validation": 100, "data.test": 1000}
# A name, a config, and overrides beside FEW.
CONFIGS = [
    ("reverse, 10 symbols", "reverse", ""),
    ("reverse, 1 thread, d_model 256", "reverse",
     "train.threads=1 model.d_model=256 model.heads=8 model.d_ff=1024 data.test=200"),
    ("reverse, 2,000 symbols", "reverse", "task.symbols=2000 data.test=200"),
    ("reverse, 20,000 symbols", "reverse", "task.symbols=20000 data.test=100"),
    ("reverse, 20,000 symbols, attribution", "reverse",
     "task.symbols=20000 model.norm=pre model.output.hidden=0 model.layers=2 model.heads=4 data.test=64"),
    ("reverse, 20,000 symbols, 1 thread, double", "reverse",
     "task.symbols=20000 train.threads=1 train.precision=float64 train.optimizer.name=sgd data.test=64"),
    ("reverse, 200 tokens, 4 heads", "reverse", "task.length=200 model.heads=4 data.test=200"),
    ("reverse, 1,000 tokens", "reverse", "task.length=1000 train.batch=4 data.validation=8 data.test=8"),
    ("reverse, 400 tokens, 2 layers, 4 heads", "reverse",
     "task.length=400 model.layers=2 model.heads=4 train.batch=8 data.validation=8 data.test=20"),
    ("reverse, 12 layers, 8 heads", "reverse",
     "model.layers=12 model.heads=8 model.d_model=128 model.d_ff=512 model.norm=pre data.test=32 train.batch=64"),
    ("reverse, 4 layers, d_model 512", "reverse",
     "model.layers=4 model.heads=8 model.d_model=512 model.d_ff=2048 data.test=16 train.batch=64"),
    ("reverse, batch 2,048 in 16 shards", "reverse", "train.batch=2048 train.shards=16"),
    ("reverse, 12 threads", "reverse", "train.threads=12"),
    ("reverse, gelu, dropout, 4 layers", "reverse",
     "model.dropout=0.1 model.attention.dropout=0.1 model.layers=4 model.d_model=128 model.heads=4 model.activation=gelu"),
    ("reverse, 1,000,000 test sequences of 2 tokens", "reverse",
     "task.length=2 task.symbols=100 data.test=1000000 train.threads=1"),
    ("reverse, 100,000 test sequences of 256 tokens", "reverse",
     "task.length=256 data.test=100000 model.d_model=8 model.d_ff=8 model.output.hidden=0 train.batch=8"),
    ("reverse, 2 test sequences", "reverse", "data.test=2 data.validation=2"),
    ("reverse, log_heads", "reverse", "train.log_heads=true model.layers=2 model.heads=4"),
    ("copy, 100 symbols, dropout", "copy", "task.symbols=100 model.dropout=0.1 model.attention.dropout=0.1"),
    ("induction", "induction", "data.test=200"),
    ("dates", "dates", "data.test=100"),
    ("translation", "translation", ""),
    ("translation, 4 layers, d_model 256", "translation",
     "model.layers=4 model.d_model=256 model.d_ff=1024 model.heads=8 data.test=32 train.batch=64"),
    ("translation, recurrent", "translation_recurrent", ""),
    ("translation, recurrent, d_model 256", "translation_recurrent", "model.d_model=256 data.test=64"),
    ("own data, 50 tokens", "own", "tokens=50 rows=4000 longest=20"),
    ("own data, 20,000 tokens", "own", "tokens=20000 rows=30000 longest=16 data.test=100"),
    ("own data, pairs, 8,000 tokens", "own",
     "tokens=8000 rows=8000 longest=12 model.kind=encoder_decoder data.test=100"),
    ("names, with samples", "names", "data.train=1500 train.sample_every=1"),
    ("microgpt", "microgpt", "data.train=1500"),
    ("shakespeare, windows of 256, with samples", "shakespeare", "data.train= task.length=256 train.sample_every=1"),
]


def own_config(work, tokens, rows, longest, pairs):
    """Writes a config with data of its own: labels of single tokens, or pairs."""
    draw = random.Random(1)
    names = [f"t{i}" for i in range(tokens)]
    with open(work / "own.tsv", "w", encoding="utf-8") as file:
        for _ in range(rows):
            line = [draw.choice(names) for _ in range(draw.randint(longest // 2, longest))]
            target = reversed(line) if pairs else line
            file.write(" ".join(line) + "\t" + " ".join(target) + "\n")
    (work / "own.yaml").write_text("task: {name: file, file: own.tsv}\n", encoding="utf-8")


class Measurement:
    def __init__(self, arguments, work):
        self.thimble, self.peak_program = arguments.thimble.resolve(), arguments.peak_memory.resolve()
        self.configs, self.work = arguments.source.resolve() / "configs", work

    def output(self, *command):
        return subprocess.run([str(word) for word in command], cwd=self.work, check=True, capture_output=True,
                              text=True).stdout

    def overrides(self, config, text):
        values = dict(FEW)
        values.update(part.split("=") for part in text.split())
        values = {key: value for key, value in values.items() if value != ""}
        if config != "own":
            return self.configs / f"{config}.yaml", [f"{key}={value}" for key, value in values.items()]
        sizes = [int(values.pop(key)) for key in ("tokens", "rows", "longest")]
        own_config(self.work, *sizes, "model.kind" in values)
        return "own.yaml", [f"{key}={value}" for key, value in values.items()]

    def measure(self, config, text):
        """Returns the estimate and the peak in bytes."""
        path, overrides = self.overrides(config, text)
        cost = json.loads(self.output(self.thimble, "config", "cost", path, *overrides, "--json", "-"))
        peak = self.output(self.peak_program, self.thimble, "train", path, *overrides, "--out", "run", "--quiet")
        return cost["memory_bytes"]["total"], 1024 * int(peak.split()[-1])


def mebibytes(number):
    return f"{number / 2**20:.1f}"


def main():
    parser = argparse.ArgumentParser()
    for name in ("thimble", "peak_memory", "source"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--docs", type=pathlib.Path)
    parser.add_argument("numbers", type=int, nargs="*")
    arguments = parser.parse_args()
    lines = ["| config | estimate, MiB | peak, MiB | ratio |", "|---|---|---|---|"]
    ratios = []
    for number, (name, config, text) in enumerate(CONFIGS, 1):
        if arguments.numbers and number not in arguments.numbers:
            continue
        with tempfile.TemporaryDirectory() as directory:
            estimate, peak = Measurement(arguments, pathlib.Path(directory)).measure(config, text)
        ratios.append(estimate / peak)
        lines.append(f"| {name} | {mebibytes(estimate)} | {mebibytes(peak)} | {ratios[-1]:.2f} |")
        print(lines[-1], flush=True)
    print(f"{len(ratios)} estimates over the peak: from {min(ratios):.2f} to {max(ratios):.2f}")
    if arguments.docs:
        page = arguments.docs.read_text(encoding="utf-8")
        begin, end = "<!-- memory_estimates.py -->\n", "<!-- end -->\n"
        before, rest = page.split(begin, 1)
        table = "\n".join(lines) + "\n"
        arguments.docs.write_text(before + begin + "\n" + table + "\n" + end + rest.split(end, 1)[1], encoding="utf-8")
    return 0 if all(LOW <= ratio <= HIGH for ratio in ratios) else 1


if __name__ == "__main__":
    sys.exit(main())
