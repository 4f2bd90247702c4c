"""Outputs that are inputs, or files of a run."""
import fcntl
import os

import oracle
from commands import Command, Finding
from world import Case

TARGETS = ("run/config.yaml", "run/data.json", "run/metrics.jsonl", "run/summary.json", "run/.lock",
           "run/checkpoints/final.safetensors", "run/checkpoints/best.safetensors",
           "run/checkpoints/step-3.safetensors", "run/checkpoints/step-99.safetensors",
           "run/checkpoints/final.safetensors.damaged", "run/config.yaml.1-0.tmp", "run", "run/checkpoints")


def spelling(rng, case, path):
    """Returns another name of the path, perhaps through a link."""
    outside = case.at("outside")
    os.makedirs(outside, exist_ok=True)
    kind = rng.choice(("plain", "plain", "dots", "absolute", "symbolic link", "linked folder", "hard link"))
    folder, name = os.path.split(path)
    if kind == "dots":
        return kind, os.path.join("sister/..", folder, ".", name)
    if kind == "absolute":
        return kind, case.at(path)
    if kind == "symbolic link":
        os.symlink(case.at(path), outside + "/linked")
        return kind, "outside/linked"
    if kind == "linked folder":
        os.symlink(case.at(folder), outside + "/folder")
        return kind, "outside/folder/" + name
    if kind == "hard link" and os.path.isfile(case.at(path)):
        os.link(case.at(path), outside + "/hard")
        return kind, "outside/hard"
    return "plain", path


# What may be written: streams, new files, and files whose names are those of a run's without being in one.
FREE = ("/dev/stdout", "/dev/null", "pipe", "new.json", "config.yaml", "summary.json", "metrics.jsonl", "sweep.json",
        "checkpoints/best.safetensors")


def permitted(name, world, state, rng, findings):
    """Writes twice to a place that no run owns, in a folder that has files of the same names."""
    case = Case(world, state)
    world.restore(state)
    os.mkdir(case.at("checkpoints"))
    with open(case.at("config.yaml"), "w", encoding="utf-8") as file:
        file.write("a: project\n")
    target = rng.choice(FREE)
    command = Command(["inspect" if world.has_heads() else "eval", "sister", "--json", target])
    if target == "pipe":
        os.mkfifo(case.at(target))
        end = os.open(case.at(target), os.O_RDWR)
        fcntl.fcntl(end, 1031, 1 << 20)  # F_SETPIPE_SZ: nobody reads while the program writes
    for _ in range(2):
        result = world.execute(command.arguments)
        if problem := result.problem() or result.status != 0 and "refuses what is whole":
            findings.append(Finding(name, "output", [problem], str(command), f"output at {target}", state, result))
            break
        if target == "pipe":
            os.read(end, 1 << 20)
    if target == "pipe":
        os.close(end)
    return "output"


def overwriting(name, world, state, rng, findings):
    """Names an input, or a file of the run, as an output."""
    if rng.random() < 0.3 and "another seed" in world.donors:
        return permitted(name, world, state, rng, findings)
    case = Case(world, state)
    world.restore(state)
    path = rng.choice(TARGETS + ("cfg.yaml", *world.data))
    kind, target = spelling(rng, case, path)
    option = rng.choice(("--json", "--json", "--html"))
    choices = [["compare", "run", "sister", option], ["inspect", "run", "--sequences", "4", option],
               ["eval", "run", "--json"], ["train", "cfg.yaml", "--out", "run", "--resume", "--json"]]
    if path == "cfg.yaml":
        choices = [["train", path, "--out", "new", "--json"], ["config", "show", path, "--json"],
                   ["train", path, "--out", "run", "--resume", "--json"]]
    elif path in world.data:
        choices.append(["train", "cfg.yaml", "--out", "new", "--json"])
    elif rng.random() < 0.2:
        choices = [["train", "cfg.yaml", "--out", "new", "--json"]]
        kind, target = "plain", path.replace("run", "new", 1)
    arguments = [*rng.choice(choices), target]
    before = world.snapshot()
    result = world.execute(arguments)
    after = world.snapshot()
    problem = result.problem()
    problems = [problem] if problem else []
    if not problem and result.status == 2:
        problems = list(oracle.refusal_problems(result, before, after, {""}, "--resume" in arguments))
    elif not problem and kind == "hard link" and before.get(path) == after.get(path):
        pass  # the link was replaced, not the file
    elif not problem:
        problems = [f"does not refuse to write to {path} ({kind})"]
    if problems:
        damage = f"output at {path} ({kind})"
        findings.append(Finding(name, "output", problems, str(Command(arguments)), damage, state, result))
    return "output"
