"""Decides whether a command on a damaged run refused, or did what it must."""
import json
import os
import re

import normal
from program import changes

# Keys that may change when a run is resumed (docs/runs.md).
MAY_CHANGE = re.compile(r"train\.(steps|threads|target\.(accuracy|loss)|patience|evaluate_every|checkpoint_every|"
                        r"checkpoint_series)$")
PATHS = re.compile(r"task\.(validation_|test_|vocabulary_)?file$")
# Damage to these changes what is shown, not what is computed: a warning that names the file is enough.
WARNED = re.compile(r"(metrics\.jsonl|summary\.json)$|^(data|validation)\.")
REMADE = ("run/config.yaml", "run/data.json", "run/metrics.jsonl", "run/summary.json",
          "run/checkpoints/final.safetensors")
STEP = re.compile(r"/step-[1-9]\d*\.safetensors$")
LEFTOVER = re.compile(r"(\.tmp|\.lock|\.claim-\d+)$")


class Damage:
    """What is known about the damage of a case."""

    def __init__(self, world, mutations=(), keys=None):
        self.world = world
        keys = {} if not mutations else keys
        self.touched = set().union(*(mutation.touched for mutation in mutations))
        self.unreadable = any(mutation.unreadable for mutation in mutations)
        # Keys of the config that have other values: {key: value}; None if the config is invalid.
        self.keys = keys
        self.illegal = [] if keys is None else [key for key in keys if not MAY_CHANGE.match(key) and
                                                not PATHS.match(key)]
        self.legal = {} if keys is None else {key: value for key, value in keys.items() if MAY_CHANGE.match(key)}

    def names(self):
        """Returns what a message may name: the file, its folder, or a key."""
        named = {os.path.basename(path) for path in self.touched} | {"run/", "run:"} | set(self.illegal)
        return named | set(self.world.data) if "run/config.yaml" in self.touched else named


def file_problems(before, after, reference_after, touched):
    """Yields what no command may leave on the disk."""
    for change in changes(before, after):
        sign, path = change[0], change[1:]
        if sign == "+" and LEFTOVER.search(path):
            yield f"leaves {os.path.basename(path)}"
        if sign != "-" and after[path][0] == "file":
            try:
                normal.normal(path, after[path][2])
            except ValueError:
                yield f"leaves a torn {path}"
        if sign == "*" and before[path][0] == after[path][0] and before[path][1] != after[path][1] and \
                path not in ("run/summary.json", "run/checkpoints/final.safetensors"):  # which training on makes again
            yield f"changes the mode of {path} from {before[path][1]:o} to {after[path][1]:o}"
        if not path.startswith(("run", "new")) and not is_expected(path, before, after, reference_after, touched):
            yield f"{'removes' if sign == '-' else 'changes'} {path}, which is no file of the run"


def is_expected(path, before, after, reference_after, touched):
    """Returns whether a file outside took what the file of the run that links to it must hold."""
    for name in touched:
        if before.get(name, ("",))[0] == "link" and os.path.basename(name) == os.path.basename(path):
            wanted = reference_after.get(name)
            return wanted is not None and path in after and same(name, wanted[2], after[path][2])
    return False


def same(path, first, second):
    try:
        return first == second or normal.normal(path, first) == normal.normal(path, second)
    except (ValueError, TypeError, AttributeError):
        return False


def has_message(result):
    return result.err.startswith("thimble: ") or "\nthimble: " in result.err


def refusal_problems(result, before, after, names, reference=None, resumes=False):
    """Yields what is wrong with a refusal."""
    stopped = "cannot be written" in result.message or "cannot be flushed" in result.message
    for change in changes(before, after):
        if change[0] == "-" and LEFTOVER.search(change) or change.endswith("/.lock"):
            continue  # of a run that was killed
        if reference is not None and change in reference.changes and not resumes:
            continue  # the end of a run that was killed
        if stopped and resumes and not change.endswith(".damaged"):
            continue  # what was trained until then
        yield f"refuses, but {dict(zip('+-*', ('creates', 'removes', 'changes')))[change[0]]} {change[1:]}"
    if result.out.strip() and "cannot be flushed" not in result.message:
        yield "refuses, but prints a result"
    if not has_message(result):
        yield "refuses without a message"
    elif not any(name in result.message for name in names):
        yield "refuses without naming the file"


def read_problems(result, before, after, reference, damage):
    """Yields what is wrong after a command that only reads has succeeded."""
    if result.out != reference.out and masked(result.out, damage) != masked(reference.out, damage):
        if any(STEP.search(change) and change[1:] in after for change in reference.changes):
            return  # a checkpoint more, which could not be removed after a kill
        warned = [path for path in damage.touched if WARNED.search(path) and os.path.basename(path) in result.message
                  or path == "run/config.yaml" and "task." in result.message]
        if not warned:
            yield "other numbers"
    for change in changes(before, after):
        if change not in reference.changes and not (change[0] == "-" and LEFTOVER.search(change)):
            yield f"only reads, but {dict(zip('+-*', ('creates', 'removes', 'changes')))[change[0]]} {change[1:]}"


def masked(out, damage):
    """Returns the JSON without the rows of config keys that may differ."""
    try:
        value = json.loads(out)
    except ValueError:
        return out
    if isinstance(value, dict) and isinstance(value.get("config"), list):
        value["config"] = [row for row in value["config"] if row.get("key") not in damage.legal]
    return value


def resolve(tree, path):
    """Returns the content of a file, through links."""
    for _ in range(5):
        entry = tree.get(path)
        if entry is None or entry[0] != "link":
            return entry
        path = os.path.normpath(os.path.join(os.path.dirname(path), entry[2]))
    return None


def resume_problems(before, after, reference, damage):
    """Yields how the run differs from one that was never damaged."""
    wanted = {path: entry for path, entry in reference.after.items() if is_run_file(path, entry)}
    there = {path: resolve(after, path) for path, entry in after.items()
             if path.startswith("run/") and entry[0] in ("file", "link", "special")}
    steps = [path for path in there if STEP.search(path)]
    if not steps and any(STEP.search(path) and path not in damage.touched for path in wanted):
        yield "lacks a step-N.safetensors"
    for path in sorted(wanted.keys() | there.keys()):
        if path == "run/changes.json":
            continue  # which says what the checkpoint was trained with
        # Which of them are there depends on where training was interrupted.
        if STEP.search(path) and (path not in there or path not in wanted and is_of(damage, there[path])):
            continue
        data = there[path][2] if there.get(path) else None
        if path in wanted and same(path, wanted[path][2], data):
            continue
        if isinstance(data, tuple) and path in damage.touched:
            continue  # it kept a mode that does not let it be read
        if data is None and path in wanted:
            set_aside = path + ".damaged" in there and path in damage.touched
            if not (set_aside or path in damage.touched and path not in REMADE):
                yield f"lacks {path}"
        elif path.endswith(".damaged") and path not in before:
            yield from set_aside_problems(path, before, after, damage)
        elif path in damage.touched and path not in REMADE and before.get(path) == after.get(path):
            continue
        elif path in wanted:
            yield f"ends with another {path}"
        elif before.get(path) != after.get(path):
            yield f"{'overwrites' if path in before else 'adds'} {path}"
        elif path not in damage.touched and not is_under(path, damage.touched):
            yield f"keeps {path}"
    for path in damage.touched - wanted.keys():
        if path in before and path not in after and not LEFTOVER.search(path) and path + ".damaged" not in after and \
                 not STEP.search(path):
            yield f"removes {path}"


def is_of(damage, entry):
    """Returns whether a checkpoint has the weights that the run has at that step."""
    try:
        metadata = normal.read_safetensors(entry[2])[0]
        return damage.world.trajectory.get(metadata["step"], metadata["weights_hash"]) == metadata["weights_hash"]
    except (ValueError, KeyError, TypeError):
        return False


def is_run_file(path, entry):
    return path.startswith("run/") and entry[0] == "file"


def is_under(path, folders):
    return any(path.startswith(folder + "/") for folder in folders)


def set_aside_problems(path, before, after, damage):
    origin = path.removesuffix(".damaged")
    if origin not in before or before[origin] != after[path]:
        yield f"adds {path}, which is no file that was there"
    elif origin not in damage.touched:
        yield f"renames {path}, which was not damaged"
    elif before[origin][2] in damage.world.intact and not damage.unreadable:
        yield f"renames {path}, which is intact"


def judge(result, command, before, after, reference, damage):
    """Returns what is wrong with how a command on a damaged run ended."""
    problem = result.problem()
    if problem:
        return [problem]
    problems = list(file_problems(before, after, reference.after, damage.touched))
    if result.status == 2:
        names = damage.names() if reference.status != 2 else {""}
        problems += refusal_problems(result, before, after, names, reference, command.resumes)
        return problems
    if result.status != reference.status:
        problems.append(f"exit status {result.status} for {reference.status}")
    elif command.must_refuse:
        problems.append(f"goes on, though {command.must_refuse}")
    if command.resumes:
        problems += resume_problems(before, after, reference, damage)
    elif result.status == reference.status:
        problems += read_problems(result, before, after, reference, damage)
    return problems
