"""Decides from what is on the disk whether a command must go on or be refused: what docs/runs.md promises about a run
directory, written down a second time."""
import json
import os
import re

import normal

# Keys that may change when a run is resumed.
MAY_CHANGE = re.compile(r"train\.(steps|threads|target\.(accuracy|loss)|patience|evaluate_every|checkpoint_every|"
                        r"checkpoint_series)$")
PATHS = re.compile(r"task\.(validation_|test_|vocabulary_)?file$")
LEARNING_RATE = "train.optimizer.lr"  # which may differ between the checkpoints of a run
BOM = b"\xef\xbb\xbf"
CHECKPOINT = re.compile(r"run/checkpoints/(best|final|step-([1-9]\d{0,8}))\.safetensors$")
CHECKPOINT_LIKE = re.compile(r"step-|best|final")
LEFT_OVER = re.compile(r"\.(tmp|damaged|lock)(/|$)")


class Verdict:
    """What must happen, with the reasons. Without any the command must go on, and do what it does on the undamaged
    run; `compared` is False where that is no measure. `metrics` says what the lines up to the checkpoint are, `same_steps`
    whether weights at a step are those of any other run of the world."""

    def __init__(self):
        self.refuse, self.unsure, self.compared = [], [], True
        self.metrics, self.same_steps = "same", True
        self.keeps_config = False  # whether config.yaml, and not another file, has the values that training goes on with
        self.whole = set()  # names of files that are as they were, as values: no remark may name them

    def must_refuse(self):
        return bool(self.refuse)

    def must_accept(self):
        return not self.refuse and not self.unsure

    def may_be_another_run(self):
        """Takes back what config.yaml contradicts: it and the checkpoint may have come from the same place."""
        self.refuse = [why for why in self.refuse if "config.yaml" not in why]
        self.doubt("config.yaml and the checkpoint may be of one run", False)

    def doubt(self, why, compared=True):
        self.unsure.append(why)
        self.compared = self.compared and compared


def for_undamaged(world, arguments):
    """Returns the verdict about a command on an undamaged run."""
    verdict = Verdict()
    verdict.same_steps = world.same_steps(arguments)
    return verdict


class Found:
    """What a run directory holds, compared with what it held before the damage."""

    def __init__(self, case, damage):
        self.case, self.damage = case, damage
        folder = case.at("run/checkpoints")
        self.closed = os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK)
        self.checkpoints = {path: self.checkpoint(path) for path in case.entries()
                            if CHECKPOINT.match(path) and self.read(path) is not None}

    def read(self, path):
        """Returns the bytes of a regular file, None if it is missing, False if it cannot be read."""
        try:
            os.stat(self.case.at(path))
        except FileNotFoundError:  # also for a link to nothing
            return None
        except OSError:
            return False
        return self.case.read_now(path) if os.path.isfile(self.case.at(path)) else False

    def checkpoint(self, path):
        """Returns same, own (of another step or time), kin (of a run with other steps), foreign, damaged or
        unreadable."""
        data = self.read(path)
        if data is False:
            return "unreadable"
        if data == self.case.original(path):
            return "same"
        return self.case.world.origin.get(data, "damaged")

    def step(self, path):
        try:
            return int(normal.read_safetensors(self.read(path))[0]["step"])
        except (ValueError, KeyError, TypeError, IndexError):
            return 0

    def newest(self):
        """Returns the checkpoints in the order in which they are tried."""
        def age(path):
            match = CHECKPOINT.match(path)
            return (match[1] != "final", match[2] is None, -int(match[2] or 0))
        return sorted(self.checkpoints, key=age)

    def values(self, path):
        """Returns same, equal (as a value), unsure (other paths of data files, a byte order mark, zeros at the end),
        other, damaged, missing or unreadable."""
        data, old = self.read(path), self.case.original(path)
        if data in (None, False):
            return "missing" if data is None else "unreadable"
        if data == old:
            return "same"
        marked = data.startswith(BOM) or data.endswith(b"\0")
        try:
            now, before = json.loads(data.rstrip(b"\0").decode("utf-8-sig")), json.loads(old.decode("utf-8"))
        except (ValueError, AttributeError, RecursionError):
            return "damaged"
        if now == before:
            return "unsure" if marked else "equal"
        return "unsure" if without_paths(now) == without_paths(before) else "other"

    def metrics(self, step):
        """Returns same, later (only lines after the step differ), edited or foreign (the first line names another run)."""
        data, old = self.read("run/metrics.jsonl"), self.case.original("run/metrics.jsonl")
        if data == old:
            return "same"
        if not isinstance(data, bytes) or old is None:
            return "edited"
        now, before = lines(data), lines(old)
        runs = [found[0].get("run") for found in (now, before) if found and found[0]]
        if runs and isinstance(runs[0], str) and runs[0] != runs[-1]:
            return "foreign"
        if now == before:
            return "same"
        stated = sum(line.get("step", 0) <= step for line in before if line is not None)
        begins_later = len(now) <= stated or now[stated] is not None and now[stated].get("step", 0) > step
        return "later" if now[:stated] == before[:stated] and begins_later else "edited"


def lines(data):
    """Returns the values of the lines that are not blank; None for one that is no JSON object."""
    def value(line):
        try:
            found = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None
    return [value(line) for line in data.split(b"\n") if line.strip()]


def without_paths(value):
    if isinstance(value, dict):
        return {key: without_paths(item) for key, item in value.items() if key not in ("path", "file")}
    return [without_paths(item) for item in value] if isinstance(value, list) else value


def judge_config(verdict, found, damage, command):
    """Compares config.yaml with what was trained."""
    state = found.read("run/config.yaml")
    if state is False or damage.keys == {} and damage.unknown_config:
        verdict.doubt("config.yaml cannot be read, or its data are not there", not command.resumes)
    elif state is not None and damage.keys is None:
        if command.own_config or not command.resumes:  # rules that only training needs do not matter to readers
            verdict.doubt("config.yaml is invalid")
        else:
            verdict.refuse.append("config.yaml is invalid")
    illegal = [key for key in damage.illegal if command.resumes or key != LEARNING_RATE]
    if illegal and command.own_config:
        verdict.doubt(f"config.yaml has another {illegal[0]}")
    elif illegal:
        verdict.refuse.append(f"config.yaml has another {illegal[0]}")
    if any(PATHS.match(key) for key in damage.keys or ()):
        verdict.doubt("config.yaml has another path of a data file")


def judge_surroundings(verdict, case, damage):
    """Adds doubts about data files, links, modes, and files that could be taken for those of a run."""
    if damage.touched & set(case.world.data):
        verdict.doubt("a data file changed")
    for path in damage.touched:
        name = os.path.basename(path)
        if os.path.islink(case.at(path)):
            verdict.doubt(f"{name} is a symbolic link")
        elif path in damage.moded and os.getuid() != 0:
            verdict.doubt(f"{name} has another mode", False)
        elif LEFT_OVER.search(path) or case.original(path) is None and CHECKPOINT_LIKE.search(path):
            verdict.doubt(f"{name} is no file of this run", CHECKPOINT.match(path) is None)


def of_reader(case, command, damage):
    """Returns the verdict about a command that reads the run."""
    verdict, found = Verdict(), Found(case, damage)
    judge_surroundings(verdict, case, damage)
    if found.closed:
        return verdict
    if command.weights:
        state = found.checkpoint(command.weights)
        if state == "damaged":
            verdict.refuse.append(f"{command.weights} is damaged")
        elif state not in ("same", "own"):
            verdict.doubt(f"{command.weights} is {state}", False)
        verdict.compared = verdict.compared and state == "same"
        return verdict
    data = found.values("run/data.json")
    if data in ("missing", "damaged", "other", "unreadable"):
        verdict.refuse.append(f"data.json is {data}")
    elif data == "unsure":
        verdict.doubt("data.json has other paths, or a byte order mark")
    judge_config(verdict, found, damage, command)
    order = found.newest()
    path = f"run/checkpoints/{command.checkpoint}.safetensors" if command.checkpoint else order[0] if order else None
    state = found.checkpoints.get(path, "missing")
    if state == "foreign" and damage.illegal:
        verdict.may_be_another_run()
    elif state in ("missing", "damaged", "foreign", "unreadable"):
        verdict.refuse.append(f"the checkpoint is {state}")
    elif state != "same":
        verdict.doubt(f"the checkpoint is {state}", False)
    if found.values("run/summary.json") == "other" or state == "same" and found.metrics(found.step(path)) != "same":
        verdict.compared = False  # an edited log or summary is shown as it stands
    return verdict


def of_resume(case, command, damage):
    """Returns the verdict about a command that resumes the run."""
    verdict, found = Verdict(), Found(case, damage)
    judge_surroundings(verdict, case, damage)
    if found.closed:
        return verdict
    newest = next((path for path in found.newest() if found.checkpoints[path] != "damaged"), None)
    if newest is None:
        verdict.doubt("no checkpoint is left", not (damage.illegal or damage.keys is None or
                                                    damage.touched & {*case.world.data, "run/data.json"}))
        verdict.same_steps = verdict.compared
        return verdict
    judge_config(verdict, found, damage, command)
    if found.checkpoints[newest] == "foreign" and damage.illegal:
        verdict.may_be_another_run()
    elif found.checkpoints[newest] == "foreign":
        verdict.refuse.append(f"{os.path.basename(newest)} is of another run")
    for path, state in found.checkpoints.items():
        if state not in ("same", "damaged"):
            verdict.doubt(f"{os.path.basename(path)} is {state}", False)
            verdict.same_steps = verdict.same_steps and state == "own"
    data = found.values("run/data.json")
    if data in ("damaged", "other"):
        verdict.refuse.append(f"data.json is {data}")
    elif data not in ("same", "equal"):
        verdict.doubt(f"data.json is {data}")
    if found.values("run/summary.json") not in ("same", "equal", "missing"):
        verdict.doubt("summary.json is not what was written")
    verdict.metrics = found.metrics(found.step(newest))
    verdict.keeps_config = not command.own_config
    if verdict.metrics == "foreign":
        verdict.refuse.append("metrics.jsonl is of another run")
    elif verdict.metrics == "edited" and not isinstance(found.read("run/metrics.jsonl"), bytes):
        verdict.doubt("metrics.jsonl cannot be read")
    if float(damage.legal.get("train.steps", 1e9)) < found.step(newest):
        verdict.doubt("train.steps is below the steps already trained")
    return verdict


def verdict_of(case, command, damage):
    """Returns what must happen to a command."""
    verdict = of_resume(case, command, damage) if command.resumes else of_reader(case, command, damage)
    found = Found(case, damage)
    if damage.touched & set(case.world.data):
        return verdict
    verdict.whole = {os.path.basename(path) for path in ("run/data.json", "run/summary.json")
                     if found.values(path) in ("same", "equal")}
    newest = found.newest()
    if newest and found.metrics(found.step(newest[0])) in ("same", "later"):
        verdict.whole.add("metrics.jsonl")
    return verdict
