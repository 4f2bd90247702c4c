"""Cases: a state of a run, damage or faults, a command or two, and the judgement."""
import os
import random

import allowed
import beside
import faulty
import oracle
import outputs
import overrides
from commands import Command, Finding, random_command
from expect import MAY_CHANGE, Verdict, verdict_of
from mutations import mutate
from program import changes
from world import MISSING_DATA, Case

CASES = 36  # of a world
MAX_STEPS = 40


def damage_of(case, mutations):
    """Returns what is known about damage: also the keys of config.yaml that no longer have the values of the undamaged
    one."""
    world, path = case.world, "run/config.yaml"
    if all(mutation.allowed for mutation in mutations):
        return oracle.Damage(world, mutations, {key: value for mutation in mutations
                                                for key, value in (mutation.keys or {}).items()})
    before, after = case.original(path), case.read_now(path) if os.path.isfile(case.at(path)) else None
    if before is None or after in (None, False, before):
        return oracle.Damage(world, mutations, {})
    old, new = world.config_of(before), world.config_of(after)
    if MISSING_DATA in (old, new):
        return oracle.Damage(world, mutations, {}, True)
    if new is None or old is None:
        # Keys that may change can contradict each other, which matters to training alone.
        legal = all(MAY_CHANGE.match(key) for mutation in mutations for key in mutation.keys or ("",))
        return oracle.Damage(world, mutations, {}, True) if legal else oracle.Damage(world, mutations, None)
    return oracle.Damage(world, mutations, {key: new.get(key) for key in old.keys() | new.keys()
                                            if old.get(key) != new.get(key)})


def reference_arguments(command, damage):
    """Returns what leads to the same result on the undamaged run: resuming with the keys that config.yaml changes. None
    if that would take too long."""
    if not command.resumes or command.own_config or "run/config.yaml" not in damage.touched:
        return command.arguments
    if float(damage.legal.get("train.steps", 0)) > MAX_STEPS or float(damage.legal.get("train.threads", 0)) > 8:
        return None
    overridden = {text.split("=")[0] for text in command.arguments if "=" in text}
    return command.arguments + [f"{key}={value}" for key, value in sorted(damage.legal.items()) if key not in overridden]


def set_aside(before, after):
    """Returns the files that were renamed because they are damaged."""
    return [path.removesuffix(".damaged") for path in after if path.endswith(".damaged") and path not in before]


def damaged(name, world, state, rng, findings):
    """Damages a state once or twice and runs one to three commands on it; every third time the change is allowed."""
    case, number = Case(world, state), int(name.split(".")[1])
    world.restore(state)
    if number % 3 == 0:
        made = [allowed.change(rng, case, number // 3)]
    else:
        made = [mutate(rng, case) for _ in range(1 if rng.random() < 0.85 else 2)]
    made = [mutation for mutation in made if mutation is not None]
    if not made:
        return "none"
    commands = [random_command(rng, world, case) for _ in range(rng.randint(1, 3))]
    commands.sort(key=lambda command: command.resumes)  # the first resumption is the last command
    text = "; ".join(map(str, made))
    damage = damage_of(case, made)
    wanted = set().union(*(mutation.keys for mutation in made if mutation.keys))
    if wanted and len(made) == 1 and damage.keys is not None and not wanted & damage.keys.keys() and \
            not damage.unknown_config:
        findings.append(Finding(name, "damage", ["config show misses the change"], "", text, state))
    # Without its newest checkpoint a run is as it was before.
    deleted = tuple(path for mutation in made for path in mutation.deleted if path.endswith(".safetensors"))
    with case.moved_back(made[0].place):
        before = world.snapshot()
    for command in commands:
        arguments = reference_arguments(command, damage)
        if arguments is None or (damage.keys or made[0].place != "run") and "--html" in arguments:
            continue  # the page has the values of all keys, and the name of the run
        with case.moved_back(made[0].place):
            verdict = verdict_of(case, command, damage)
        verdict.same_steps = verdict.same_steps and world.same_steps(arguments)
        result = world.execute(command.on(made[0].place).arguments)
        result.out = result.out.replace(made[0].place, "run")
        with case.moved_back(made[0].place):
            after = world.snapshot()
        lost = deleted + tuple(path for path in set_aside(before, after) if path in damage.touched)
        # A run that resumes from an earlier checkpoint ends with the same bits, unless it is to train longer.
        reference = world.reference(state, arguments, lost if not command.resumes or "=" in arguments[-1] else ())
        problems = oracle.judge(result, command, before, after, reference, damage, verdict)
        world.program.verdicts["refuse" if verdict.refuse else "either" if verdict.unsure else "accept"] += 1
        if problems:
            findings.append(Finding(name, "damage", problems, str(command), text, state, result))
        else:
            allow = "allowed, " if made[0].allowed else ""
            outcome = "refused" if result.status == 2 else "the same" if result.out == reference.out else "warned"
            world.program.outcomes[allow + ("resumed" if command.resumes and outcome != "refused" else outcome)] += 1
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
    problems += oracle.resume_problems({}, reference.after, whole, oracle.Damage(world), Verdict())
    if problems:
        command = str(Command(world.resume_arguments()))
        findings.append(Finding(name, "control", problems, command, "none", state, reference.result))
    if Case(world, state).has_checkpoint():
        command = Command(["eval", "run", "--json", "-"])
        read = world.reference(state, command.arguments)
        if read.status != 0:
            findings.append(Finding(name, "control", ["refuses what is whole"], str(command), "none", state, read.result))


FAMILIES = ((damaged, 70), (faulty.faulty, 10), (outputs.overwriting, 6), (overrides.overridden, 6),
            (faulty.killed, 2), (beside.beside, 1))


def run_case(name, world, findings):
    """Runs a case; returns its kind."""
    rng = random.Random(f"case {name}")
    functions, weights = zip(*FAMILIES)
    function = rng.choices(functions, weights)[0] if int(name.split(".")[1]) % 3 else damaged
    return function(name, world, rng.choice(world.states), rng, findings)
