"""Resumed runs with other values of the keys that may change, and --stop-after, again and again, some of them killed: all
must go on, be readable at every stop, and pass through the same weights."""
import json

import normal
import oracle
from commands import Command, Finding, reader
from expect import CHECKPOINT, Verdict
from world import Case

VALUES = {"train.threads": (1, 2), "train.target.accuracy": (0, 0.01, 0.5, 1), "train.target.loss": (0, 0.01, 2, 9),
          "train.patience": (0, 1, 2), "train.evaluate_every": (1, 2, 3, 5), "train.checkpoint_every": (0, 1, 2, 3),
          "train.checkpoint_series": ("true", "false")}


def arguments_of(rng, world, trained):
    """Returns a resumption that must be accepted, and whether a target may be missed."""
    keys = rng.sample(sorted(VALUES), rng.randint(0, 3))
    values = {key: rng.choice(VALUES[key]) for key in keys}
    if world.config["train"]["evaluate_every"] == 0 and any("target" in key or "patience" in key for key in keys):
        values["train.evaluate_every"] = 1
    if rng.random() < 0.5:
        values["train.steps"] = max(4, trained + rng.choice((0, 0, 1, 2, 4)))
    stop = ["--stop-after", str(max(1, trained + rng.randint(-2, 3)))] if rng.random() < 0.5 else []
    return ["train", "run", "--resume", *(f"{key}={value}" for key, value in values.items()), *stop]


def checkpoints(world):
    return [entry[2] for path, entry in world.snapshot().items() if CHECKPOINT.match(path)]


def trained_steps(world):
    return max((int(normal.read_safetensors(data)[0]["step"]) for data in checkpoints(world)), default=0)


def problems_after(result, world, verdict, kill):
    problem = result.problem()
    if kill and result.status == -9:
        problem = None
    elif problem is None and result.status not in (0, 1):
        problem = "refuses what is whole" if result.status == 2 else f"exit status {result.status}"
    problems = [problem] if problem else []
    damage = oracle.Damage(world)
    for path, entry in world.snapshot().items():
        if CHECKPOINT.match(path) and not oracle.is_of(damage, verdict, entry):
            problems.append(f"ends with other weights in {path}")
        if path == oracle.METRICS and not kill:
            lines = [json.loads(line) for line in entry[2].splitlines()]
            steps = [line["step"] for line in lines if line["split"] == "train"]
            if steps != sorted(set(steps)):
                problems.append("metrics.jsonl has a step twice, or in another order")
    return problems


def overridden(name, world, state, rng, findings):
    case = Case(world, state)
    if not case.has_checkpoint():
        return "none"
    world.restore(state)
    verdict, done = Verdict(), []
    for _ in range(rng.randint(1, 3)):
        trained = trained_steps(world)
        commands = [Command(arguments_of(rng, world, trained), resumes=True)]
        kill = f"kill:{rng.randint(1, 60)}" if rng.random() < 0.3 else None
        if not kill:
            commands += [reader(rng, world, case) for _ in range(2)]
        for command in commands:
            if not command.resumes and (command.weights or command.checkpoint):
                command = Command(["eval", "run", "--checkpoint", "best", "--json", "-"] if any(
                    path.endswith("best.safetensors") for path in world.snapshot() if path.startswith("run/")) else
                    ["eval", "run", "--json", "-"])
            elif command.particular:
                continue
            done.append(str(command) + (f" [{kill}]" if kill else ""))
            verdict.same_steps = verdict.same_steps and world.same_steps(command.arguments)
            result = world.execute(command.arguments, faults=kill)
            problems = problems_after(result, world, verdict, kill)
            if problems:
                findings.append(Finding(name, "override", problems, done[-1], "; ".join(done[:-1]) or "none", state, result))
                return "override"
    return "override"
