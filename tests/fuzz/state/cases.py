"""Cases: a state of a run, damage or faults, a command or two, and the judgement."""
import os
import random

import faulty
import normal
import oracle
import outputs
from commands import Command, Finding, random_command
from mutations import mutate
from program import changes
from world import MISSING_DATA, Case

MAX_STEPS = 40


def config_keys(case):
    """Returns the keys of the run's config.yaml that no longer have the values of the undamaged one, None if it is
    invalid."""
    world, path = case.world, "run/config.yaml"
    if not os.path.isfile(case.at(path)):
        return {}
    try:
        with open(os.path.join(world.at(case.state), "config.yaml"), "rb") as file:
            before = file.read()
        with open(case.at(path), "rb") as file:
            after = file.read()
    except OSError:
        return {}
    if before == after:
        return {}
    old, new = world.config_of(before), world.config_of(after)
    if MISSING_DATA in (old, new):
        return {}
    if new is None or old is None:
        return None
    return {key: new.get(key) for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


def world_data(case):
    return set(case.world.data)


def apply_config(command, case, damage):
    """Sets what the command must do because of the config; returns the arguments of its reference, or None if the
    command would take too long."""
    arguments = list(command.arguments)
    if command.resumes and not case.has_checkpoint() and (damage.illegal or damage.touched & world_data(case)):
        return None  # nothing is there that another config or other data could contradict
    if not command.reads_config or command.own_config or "run/config.yaml" not in damage.touched:
        return arguments
    if damage.keys is None and not command.resumes:
        return None  # the key may matter to training alone
    if damage.keys is None:
        command.must_refuse = "config.yaml is invalid"
    elif damage.illegal:
        command.must_refuse = f"config.yaml has another {damage.illegal[0]}"
    elif command.resumes:
        if float(damage.legal.get("train.steps", 0)) > MAX_STEPS or float(damage.legal.get("train.threads", 0)) > 8:
            return None
        overridden = {text.split("=")[0] for text in arguments if "=" in text}
        arguments += [f"{key}={value}" for key, value in sorted(damage.legal.items()) if key not in overridden]
    return arguments


def is_foreign_file(command, case, world):
    """Returns whether the command is given a checkpoint by its path, and that is one of another run."""
    if "--weights" not in command.arguments:
        return False
    path = case.at(command.arguments[command.arguments.index("--weights") + 1])
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        return False
    with open(path, "rb") as file:
        return file.read(1 << 22) in world.intact


def ends_earlier(case):
    """Returns whether metrics.jsonl of a run that goes on lacks nothing but its last lines, as after an earlier kill."""
    stored, path = os.path.join(case.world.at(case.state), "metrics.jsonl"), case.at("run/metrics.jsonl")
    if os.path.exists(case.at("run/summary.json")) or not os.path.isfile(stored) or not os.access(path, os.R_OK) or \
            not os.path.isfile(path):
        return False
    with open(stored, "rb") as old, open(path, "rb") as new:
        before, after = old.read(), new.read()
    try:
        lines = [normal.normal("metrics.jsonl", text[:text.rfind(b"\n") + 1]) for text in (before, after)]
    except ValueError:
        return False
    return lines[0][:len(lines[1])] == lines[1] != lines[0]


def set_aside(before, after):
    """Returns the files that were renamed because they are damaged."""
    return [path.removesuffix(".damaged") for path in after if path.endswith(".damaged") and path not in before]


def damaged(name, world, state, rng, findings):
    """Damages a state once or twice and runs one or two commands on it."""
    case = Case(world, state)
    world.restore(state)
    made = [mutate(rng, case) for _ in range(1 if rng.random() < 0.85 else 2)]
    made = [mutation for mutation in made if mutation is not None]
    if not made:
        return "none"
    commands = [random_command(rng, world, case) for _ in range(rng.randint(1, 3))]
    commands.sort(key=lambda command: command.resumes)  # the first resumption is the last command
    text = "; ".join(map(str, made))
    keys = config_keys(case)
    wanted = set().union(*(mutation.keys for mutation in made if mutation.keys))
    readable = os.access(case.at("run/config.yaml"), os.R_OK)
    if wanted and readable and len(made) == 1 and keys is not None and not wanted & keys.keys():
        findings.append(Finding(name, "damage", ["config show misses the change"], "", text, state))
    damage = oracle.Damage(world, made, keys)
    # Without its newest checkpoint a run is as it was before.
    deleted = tuple(mutation.path for mutation in made if mutation.deleted and mutation.path.endswith(".safetensors"))
    before = world.snapshot()
    for command in commands:
        arguments = apply_config(command, case, damage)
        if arguments is None:
            continue
        if is_foreign_file(command, case, world):
            continue  # which it is asked for
        if not command.resumes and (ends_earlier(case) or any(
                mutation.deleted and mutation.path.endswith(("metrics.jsonl", "summary.json")) for mutation in made)):
            continue  # without one of these a run is shown without curves, or as one that goes on
        if not command.resumes and not os.path.exists(case.at("run/summary.json")) and any(
                mutation.kind == "a longer run's" and mutation.path.endswith(".safetensors") for mutation in made):
            continue  # its number of steps is allowed to change; resuming compares the metrics
        if command.resumes and "=" in arguments[-1] and any(
                mutation.path.endswith(".safetensors") and mutation.kind in ("exchanged", "copied") for mutation in made):
            continue  # from an earlier step, a schedule over more steps leads elsewhere
        if damage.legal and "--html" in arguments:
            continue  # the page has the values of all keys
        result = world.execute(command.arguments)
        after = world.snapshot()
        lost = deleted + tuple(path for path in set_aside(before, after) if path in damage.touched)
        # A run that resumes from an earlier checkpoint ends with the same bits, unless it is to train longer.
        reference = world.reference(state, arguments, lost if not command.resumes or "=" in arguments[-1] else ())
        problems = oracle.judge(result, command, before, after, reference, damage)
        if problems:
            findings.append(Finding(name, "damage", problems, str(command), text, state, result))
        else:
            outcome = "refused" if result.status == 2 else "the same" if result.out == reference.out else "warned"
            world.program.outcomes["resumed" if command.resumes and outcome != "refused" else outcome] += 1
        if command.resumes or changes(before, after):
            break
    return made[0].kind.split("'s")[0]



def control(name, world, state, findings):
    """Resumes an undamaged state: it must end like the run that was never interrupted."""
    reference, whole = world.reference(state, world.resume_arguments()), world.reference("whole", world.resume_arguments())
    problem = reference.result.problem()
    problems = [problem] if problem else []
    if reference.status != whole.status:
        problems.append(f"exit status {reference.status} for {whole.status}")
    problems += oracle.resume_problems({}, reference.after, whole, oracle.Damage(world))
    if problems:
        command = str(Command(world.resume_arguments()))
        findings.append(Finding(name, "control", problems, command, "none", state, reference.result))
    return "none"


FAMILIES = ((damaged, 70), (faulty.faulty, 16), (outputs.overwriting, 8), (faulty.killed, 3))


def run_case(name, world, findings):
    """Runs a case; returns its kind."""
    rng = random.Random(f"case {name}")
    functions, weights = zip(*FAMILIES)
    function = rng.choices(functions, weights)[0]
    return function(name, world, rng.choice(world.states), rng, findings)
