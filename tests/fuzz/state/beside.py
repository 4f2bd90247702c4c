"""Commands that read a run while it is trained: each must find a whole run, or none yet."""
import os
import re
import signal
import subprocess
import time

from commands import Command, Finding

READERS = 8
NOT_YET = re.compile(r"no (such run directory|(such )?checkpoint)|not a run|holds no checkpoint")


def beside(name, world, state, rng, findings):
    world.restore(state)
    program = world.program
    program.executions += 1
    steps = ["train.steps=1000000", "train.patience=0", "train.target.accuracy=0", "train.target.loss=0",
             f"train.evaluate_every={rng.choice((1, 2, 5))}", f"train.checkpoint_every={rng.choice((1, 2, 3))}"]
    training = subprocess.Popen([program.binary, "train", "cfg.yaml", "--out", "new", *steps, "--quiet"],
                                cwd=world.place, env=program.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(rng.uniform(0, 0.05))
    problems = []
    for number in range(READERS):
        choices = [["eval", "new"], ["eval", "new", "--checkpoint", "best"]]
        if world.has_heads():
            choices.append(["inspect", "new", "--sequences", "4"])
        if os.path.isdir(os.path.join(world.place, "sister")):
            choices.append(["compare", "new", "sister"])
        command = Command([*rng.choice(choices), "--json", "-"])
        result = program.run(command.arguments, world.place)
        problem = result.problem()
        if not problem and result.status != 0 and not (result.status == 2 and NOT_YET.search(result.message)):
            problem = f"exit status {result.status} beside training"
        if problem:
            problems.append((problem, command, result))
            break
    training.send_signal(signal.SIGTERM)
    try:
        said = training.communicate(timeout=program.timeout)[1].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        training.kill()
        said = training.communicate()[1].decode("utf-8", "replace")
    if training.returncode not in (130, -signal.SIGTERM):
        findings.append(Finding(name, "beside", [f"training ends with {training.returncode}"], "thimble train", said[:200],
                                state))
    for problem, command, result in problems:
        findings.append(Finding(name, "beside", [problem], str(command), "beside training", state, result))
    return "beside"
