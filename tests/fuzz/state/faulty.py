"""Calls of the system that fail, two or three of them, and kills at a random moment."""
import re
import signal

import oracle
from commands import Command, Finding, random_command
from expect import for_undamaged
from world import Case

KINDS = ("write", "write", "fsync", "rename", "open", "allocation", "allocation", "stat", "thread", "short", "eintr",
         "read", "truncate", "mmap")


def faulty(name, world, state, rng, findings):
    """Lets two or three calls fail while a run is trained, resumed or read; then all must be as if nothing had."""
    case = Case(world, state)
    world.restore(state)
    command = random_command(rng, world, case)
    if rng.random() < 0.3:
        command = Command(["train", "cfg.yaml", "--out", "new"], resumes=True)
    counts = world.counts_of(state, command.arguments)
    plan = {}
    for kind in rng.sample(KINDS, rng.randint(2, 3)):
        if counts.get(kind):
            plan[kind] = f"{kind}:{rng.randint(1, counts[kind])}{rng.choice(('', '', '+')) if kind != 'eintr' else ''}"
    plan = ",".join(plan.values())
    if not plan:
        return "none"
    fresh = command.arguments[-1] == "new"
    reference = world.reference("whole", ["train", "run", "--resume"]) if fresh else \
        world.reference(state, command.arguments)
    before = world.snapshot()
    result = world.execute(command.arguments, faults=plan)
    after = world.snapshot()
    problems = fault_problems(result, command, fresh, before, after, reference, plan, world)
    if not problems and command.resumes and result.status == 2 and reference.status != 2:
        problems = repaired(command, fresh, state, world, reference, after)
    if problems:
        damage = "faults " + re.sub(r":\d+", "", plan)
        findings.append(Finding(name, "faults", problems, f"FAULTS={plan} {command}", damage, state, result))
    return "faults"


def fault_problems(result, command, fresh, before, after, reference, plan, world):
    problem = result.problem()
    if problem:
        return [problem]
    problems = [what for what in oracle.file_problems(before, after)
                if not (what.startswith("leaves ") and "torn" not in what and "allocation" in plan)
                and not (what == "leaves .lock" and "stat" in plan)]  # it may be another process's then
    none = oracle.Damage(world)
    if result.status == 2:
        if not oracle.has_message(result):
            problems.append("fails without a message")
        if not command.resumes:
            problems += [what for what in oracle.refusal_problems(result, before, after, {""})
                         if not (".tmp" in what or ".lock" in what or "prints" in what) or "allocation" not in plan]
        problems += [f"renames {path}" for path in after if path.endswith(".damaged") and path not in before]
    elif result.status != reference.status:
        problems.append(f"exit status {result.status} for {reference.status}")
    elif command.resumes:
        problems += oracle.resume_problems(before, moved(after) if fresh else after, reference, none,
                                           for_undamaged(world, command.arguments))
    elif "cannot be read now" not in result.message:  # data, without which a run is shown as far as it can be
        problems += [*oracle.read_problems(result, reference, none), *oracle.write_problems(before, after)]
    return problems


def moved(tree):
    """Returns the tree with the run that was trained in new in place of run."""
    return {"run" + path[3:]: entry for path, entry in tree.items() if path.startswith("new")}


def repaired(command, fresh, state, world, reference, before):
    """Resumes without faults what a failed command left."""
    arguments = command.arguments + ["--resume"] if fresh else command.arguments
    result = world.execute(arguments)
    after = world.snapshot()
    if result.problem():
        return [f"then {result.problem()}"]
    if result.status != reference.status:
        return [f"then exit status {result.status} for {reference.status}: {result.message[:150]}"]
    return [f"then {what}" for what in oracle.resume_problems(before, moved(after) if fresh else after, reference,
                                                              oracle.Damage(world), for_undamaged(world, arguments))]


def killed(name, world, state, rng, findings):
    """Kills a command at a random moment, then resumes."""
    world.restore(state)
    arguments = world.resume_arguments()
    reference = world.reference(state, arguments)
    before = world.snapshot()
    world.execute(arguments, kill=(rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)), rng.uniform(0, 0.03)))
    problems = repaired(Command(arguments, resumes=True), False, state, world, reference, before)
    if problems:
        findings.append(Finding(name, "kill", problems, str(Command(arguments)), "killed while it resumed", state))
    return "kill"
