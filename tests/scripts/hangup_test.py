"""Terminals that go away, and signals before a limit on time: training, sweeps and reproduce save and end with status 130,
unless they were told to ignore the signal; then a terminal that is gone is no error.
Usage: hangup_test.py THIMBLE_BINARY SOURCE_DIR"""

import fcntl
import glob
import json
import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import termios
import time

thimble, source = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
os.chdir(tempfile.mkdtemp())
config = [f"{source}/configs/reverse.yaml", "train.batch=32", "data.train=5000", "data.validation=100", "data.test=100",
          "train.evaluate_every=0", "train.threads=1"]
endless = [*config, "train.steps=600000"]


def start(*arguments, ignored=()):
    """A process with a terminal of its own, and the other end of the terminal."""
    main, child = pty.openpty()

    def prepare():
        os.setsid()
        fcntl.ioctl(child, termios.TIOCSCTTY, 0)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    process = subprocess.Popen([thimble, *arguments], stdin=child, stdout=child, stderr=child, preexec_fn=prepare)
    os.close(child)
    return process, main


def wait_for(process, condition):
    for _ in range(6000):
        if condition():
            return
        assert process.poll() is None, f"ended with status {process.returncode} before it was told to"
        time.sleep(0.01)
    raise AssertionError("no progress in a minute")


def steps_of(run):
    try:
        return [int(step) for step in re.findall(r'^{"step":(\d+),"split":"train"', open(f"{run}/metrics.jsonl").read(), re.M)]
    except FileNotFoundError:
        return []


def saved(run):
    steps = steps_of(run)
    assert os.path.exists(f"{run}/checkpoints/step-{steps[-1]}.safetensors"), f"{run}: step {steps[-1]} is not saved"
    return steps[-1]


# The terminal is closed.
process, terminal = start("train", *endless, "--out", "closed")
wait_for(process, lambda: len(steps_of("closed")) > 20)
os.close(terminal)
assert process.wait(60) == 130
step = saved("closed")
subprocess.run([thimble, "train", *config, f"train.steps={max(50, step + 5)}", "--out", "closed", "--resume", "--quiet"], check=True)

# The same under nohup: the run goes to its end, though what it says goes nowhere.
process, terminal = start("train", *config, "train.steps=300", "--out", "nohup", ignored=[signal.SIGHUP])
wait_for(process, lambda: len(steps_of("nohup")) > 20)
os.close(terminal)
assert process.wait(120) == 0
assert json.load(open("nohup/summary.json"))["stopped"] == "last step"

# A signal that was ignored at the start stays ignored, one by one; SIGTERM is not.
limits = [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU]
process, terminal = start("train", *endless, "--out", "deaf", "--quiet", ignored=limits)
wait_for(process, lambda: len(steps_of("deaf")) > 5)
for number in limits:
    process.send_signal(number)
before = len(steps_of("deaf"))
wait_for(process, lambda: len(steps_of("deaf")) > before + 20)
process.send_signal(signal.SIGTERM)
assert process.wait(60) == 130
saved("deaf")
os.close(terminal)

# A sweep and its runs, and reproduce; each signal comes twice.
with open("sweep.yaml", "w") as file:
    file.write(f"config: {source}/configs/reverse.yaml\nseeds: [1, 2]\n")
os.mkdir("experiments")
with open("experiments/long.yaml", "w") as file:
    file.write(f"statement: A run.\nsource: this test\nkind: golden\nseeds: [1]\n"
               f"runs:\n  one: {{config: {source}/configs/reverse.yaml, set: {{train.steps: 600000}}}}\n"
               "values:\n  loss: {run: one, of: train, path: test.loss}\nconditions:\n  - {value: loss, below: 9}\n")
for number, command in ((signal.SIGUSR1, ["sweep", "sweep.yaml", *(a for a in endless[1:] if "threads" not in a), "--jobs", "2", "--out", "twice"]),
                        (signal.SIGHUP, ["reproduce", "long", "--experiments", "experiments", "--out", "twice_more"])):
    process, terminal = start(*command, "--quiet")
    metrics = lambda: [f for f in glob.glob(f"{command[-1]}/**/metrics.jsonl", recursive=True) if steps_of(os.path.dirname(f))]
    wait_for(process, lambda: len(metrics()) == (2 if command[0] == "sweep" else 1))
    process.send_signal(number)
    time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(60) == 130, f"{command[0]}: exit status {process.returncode}"
    for file in metrics():
        saved(os.path.dirname(file))
    os.close(terminal)
print("hangup: ok")
