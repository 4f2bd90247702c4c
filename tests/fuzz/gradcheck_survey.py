#!/usr/bin/env python3
"""Runs `thimble gradcheck` on COUNT small models of every kind, and counts verdicts on gradients that are right.

usage: tests/fuzz/gradcheck_survey.py PROGRAM [COUNT [FIRST_SEED]]

Kind, score, depth (1 to 8 layers), norm, activation and the rest are drawn from the seed, which is also train.seed. Exit
status 1 if a gradient is called wrong, or more than 1 in 100 is undecided."""
import concurrent.futures
import json
import os
import random
import subprocess
import sys

SCORES = ["scaled_dot", "dot", "general", "additive", "cosine", "linear"]


def overrides(seed):
    draw = random.Random(seed)
    kind = draw.choice(["encoder", "encoder", "encoder_decoder", "recurrent"])
    score = draw.choice(SCORES + (["none"] if kind == "recurrent" else []))
    values = {"task.length": draw.choice([2, 3]), "task.symbols": draw.choice([3, 4]), "train.seed": seed,
              "model.kind": kind, "model.attention.score": score, "model.d_model": draw.choice([4, 6, 8]),
              "model.output.hidden": draw.choice([0, 8]), "model.dropout": draw.choice([0, 0, 0.1])}
    if kind == "recurrent":
        return values | {"model.output.per": "next", "model.output.hidden": 0}
    rotary = score in ("scaled_dot", "dot") and values["model.d_model"] != 6
    positions = ["sinusoidal", "learned", "none"] + ["alibi"] * (score != "linear") + ["rotary"] * rotary
    values |= {"model.layers": draw.choice([1, 1, 1, 2, 2, 2, 3, 3, 4, 8]), "model.heads": draw.choice([1, 2]),
               "model.d_ff": 8, "model.norm": draw.choice(["pre", "post"]),
               "model.norm_type": draw.choice(["layer", "rms"]), "model.gated": draw.choice(["false", "false", "true"]),
               "model.activation": draw.choice(["relu", "relu", "relu", "gelu", "gelu_tanh", "tanh", "silu"]),
               "model.positions": draw.choice(positions)}
    if kind == "encoder_decoder":
        return values | {"model.output.per": "next"}
    for key in ("norm_weight", "norm_embedding", "bias", "output.tied"):
        values[f"model.{key}"] = draw.choice(["false", "true"])
    if values["model.norm"] == "pre":
        values["model.norm_final"] = draw.choice(["false", "true"])
    if values["model.output.tied"] == "true":
        values["model.output.hidden"] = 0
    return values | {"model.attention.mask": draw.choice(["none", "causal"])}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program = sys.argv[1]
    count, first = (int(x) for x in (sys.argv[2:] + ["2000", "1"][len(sys.argv) - 2:])[:2])
    config = os.path.join(os.path.dirname(__file__), "../configs/reverse.yaml")

    def check(seed):
        arguments = [f"{key}={value}" for key, value in overrides(seed).items()]
        run = subprocess.run([program, "gradcheck", config, *arguments, "--json", "-"], capture_output=True, text=True)
        if run.returncode > 1:
            raise SystemExit(f"gradcheck_survey: {' '.join(arguments)}: {run.stderr}")
        return arguments, json.loads(run.stdout)["checks"]

    tally = {"ok": 0, "wrong": 0, "undecided": 0}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for arguments, checks in pool.map(check, range(first, first + count)):
            for result in checks:
                tally[result["verdict"]] += 1
                if result["verdict"] != "ok":
                    print(f"{result['verdict']}: {result['input']}: {result['reason']}\n  {' '.join(arguments)}", flush=True)
    print(f"{count} models, {sum(tally.values())} gradients: {tally}")
    if "THIMBLE_NUMBERS" in os.environ:
        with open(os.environ["THIMBLE_NUMBERS"], "a") as numbers:
            for what, number in {"models": count, "gradients": sum(tally.values()), "gradients called wrong": tally["wrong"],
                                 "gradients undecided": tally["undecided"]}.items():
                numbers.write(f"gradcheck of right models: {what}\t{number}\n")
    return 1 if tally["wrong"] > 0 or 100 * tally["undecided"] > sum(tally.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
