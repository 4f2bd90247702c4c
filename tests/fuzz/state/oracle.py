"""Decides whether a command on a damaged run refused, or did what it must."""
import json
import os
import re

import normal
from expect import MAY_CHANGE, PATHS
from program import changes

# Damage to these changes what is shown, not what is computed: a warning that names the file is enough.
WARNED = re.compile(r"(metrics\.jsonl|summary\.json|\.safetensors)$|^(data|validation)\.")
METRICS = "run/metrics.jsonl"
KEPT = ("run/config.yaml", "run/data.json")
REMADE = ("run/config.yaml", "run/data.json", METRICS, "run/summary.json", "run/checkpoints/final.safetensors")
STEP = re.compile(r"/step-[1-9]\d*\.safetensors$")
LEFTOVER = re.compile(r"(\.tmp|\.lock|\.claim-\d+)$")


class Damage:
    """What is known about the damage of a case. `keys` are those of the config that have other values, {key: value};
    None if the config is invalid."""

    def __init__(self, world, mutations=(), keys=None, unknown_config=False):
        self.world, self.unknown_config = world, unknown_config
        self.touched = set().union(*(mutation.touched for mutation in mutations))
        self.moded = {mutation.path for mutation in mutations if mutation.moded}
        self.unreadable = any(mutation.unreadable for mutation in mutations)
        self.unknown = {path for mutation in mutations if mutation.kind.startswith("unknown") for path in mutation.touched
                        if not LEFTOVER.search(path)}
        self.keys = keys if mutations else {}
        changed = self.keys or {}
        self.illegal = [key for key in changed if not MAY_CHANGE.match(key) and not PATHS.match(key)]
        self.legal = {key: value for key, value in changed.items() if MAY_CHANGE.match(key)}

    def names(self):
        """Returns what a message may name: the file, its folder, or a key."""
        named = {os.path.basename(path) for path in self.touched} | {"run/", "run:"} | set(self.illegal)
        return named | set(self.world.data) if "run/config.yaml" in self.touched else named


def file_problems(before, after):
    """Yields what no command may leave on the disk."""
    for change in changes(before, after):
        sign, path = change[0], change[1:]
        if sign == "+" and LEFTOVER.search(path):
            yield f"leaves {os.path.basename(path)}"
        if sign != "-" and after[path][0] == "file":
            if is_torn(path, after[path]) and not (path == METRICS and is_torn(path, before.get(path))):
                yield f"leaves a torn {path}"  # an edited log keeps its lines
        if sign == "*" and before[path][0] == after[path][0] and before[path][1] != after[path][1] and \
                path not in ("run/summary.json", "run/checkpoints/final.safetensors"):  # which training on makes again
            yield f"changes the mode of {path} from {before[path][1]:o} to {after[path][1]:o}"
        if not path.startswith(("run", "new")):
            yield f"{'removes' if sign == '-' else 'changes'} {path}, which is no file of the run"


def is_torn(path, entry):
    try:
        return entry is not None and normal.normal(path, entry[2]) is None
    except ValueError:
        return True


def same(path, first, second):
    try:
        return first == second or normal.normal(path, first) == normal.normal(path, second)
    except (ValueError, TypeError, AttributeError):
        return False


def has_message(result):
    return result.err.startswith("thimble: ") or "\nthimble: " in result.err


def refusal_problems(result, before, after, names, resumes=False):
    """Yields what is wrong with a refusal."""
    stopped = "cannot be written" in result.message or "cannot be flushed" in result.message
    for change in changes(before, after):
        if resumes and (change[0] == "-" and LEFTOVER.search(change) or change.endswith("/.lock")):
            continue  # of a run that was killed
        if stopped and resumes and not change.endswith(".damaged"):
            continue  # what was trained until then
        yield f"refuses, but {dict(zip('+-*', ('creates', 'removes', 'changes')))[change[0]]} {change[1:]}"
    if result.out.strip() and "cannot be flushed" not in result.message:
        yield "refuses, but prints a result"
    if not has_message(result):
        yield "refuses without a message"
    elif not any(name in result.message for name in names):
        yield "refuses without naming the file"


def read_problems(result, reference, damage):
    """Yields what is wrong after a command that only reads has succeeded."""
    if result.out != reference.out and masked(result.out, damage) != masked(reference.out, damage):
        if not any(WARNED.search(path) and os.path.basename(path) in result.message or
                   path == "run/config.yaml" and "task." in result.message for path in damage.touched):
            yield "other numbers"


def write_problems(before, after):
    """Yields what a command that only reads may not do."""
    for change in changes(before, after):
        yield f"only reads, but {dict(zip('+-*', ('creates', 'removes', 'changes')))[change[0]]} {change[1:]}"


def masked(out, damage):
    """Returns the JSON without the rows of config keys that may differ."""
    try:
        value = json.loads(out)
    except ValueError:
        return out
    if isinstance(value, dict) and isinstance(value.get("config"), list):
        value["config"] = [row for row in value["config"] if row.get("key") not in (damage.keys or ())]
    return value


def resolve(tree, path):
    """Returns the content of a file, through links."""
    for _ in range(5):
        entry = tree.get(path)
        if entry is None or entry[0] != "link":
            return entry
        path = os.path.normpath(os.path.join(os.path.dirname(path), entry[2]))
    return None


def resume_problems(before, after, reference, damage, verdict):
    """Yields what is wrong with a run that was resumed: other weights, something lost that was not the run's, or another
    end than that of a run that was never damaged."""
    there = {path: resolve(after, path) for path, entry in after.items()
             if path.startswith("run/") and entry[0] in ("file", "link", "special")}
    yield from kept_problems(before, after, damage, verdict)
    for path, entry in there.items():
        if path.endswith(".safetensors") and before.get(path) != after.get(path) and not is_of(damage, verdict, entry):
            yield f"ends with other weights in {path}"
    if not verdict.compared:
        return
    wanted = {path: entry for path, entry in reference.after.items() if is_run_file(path, entry)}
    if not any(STEP.search(path) for path in there) and \
            any(STEP.search(path) and path not in damage.touched for path in wanted):
        yield "lacks a step-N.safetensors"
    for path in sorted(wanted.keys() | there.keys()):
        # Which of them are there depends on where training was interrupted.
        if STEP.search(path) and (path not in there or path not in wanted):
            continue
        if path == METRICS and verdict.metrics not in ("same", "later"):
            continue
        data = there[path][2] if there.get(path) else None
        if path in wanted and same(path, wanted[path][2], data):
            continue
        if path in KEPT and before.get(path) == after.get(path) and (verdict.keeps_config or not damage.keys):
            continue  # other comments, order or spacing, which stay
        if path == METRICS and before.get(path) == after.get(path) and "*" + path not in reference.changes:
            continue  # a run that has ended, with lines after its end
        if isinstance(data, tuple) and path in damage.touched:
            continue  # it kept a mode that does not let it be read
        if data is None and path in wanted:
            set_aside = path + ".damaged" in there and path in damage.touched
            if not (set_aside or path in damage.touched and path not in REMADE):
                yield f"lacks {path}"
        elif path.endswith(".damaged") and path not in before:
            pass
        elif path in damage.touched and path not in REMADE and before.get(path) == after.get(path):
            continue
        elif path in wanted:
            yield f"ends with another {path}"
        elif before.get(path) != after.get(path):
            yield f"{'overwrites' if path in before else 'adds'} {path}"
        elif path not in damage.touched and not is_under(path, damage.touched):
            yield f"keeps {path}"


def kept_problems(before, after, damage, verdict):
    """Yields what was overwritten, renamed or removed, though the run did not write it."""
    for path, entry in before.items():
        gone = path not in after
        if entry[0] != "file" or not path.startswith("run/") or after.get(path) == entry:
            continue
        if damage.world.origin.get(entry[2]) == "foreign" or path in damage.unknown:
            yield f"{'removes' if gone else 'overwrites'} {path}, which is not of this run"
        elif gone and path in damage.touched and not LEFTOVER.search(path) and path + ".damaged" not in after and \
                not STEP.search(path):
            yield f"removes {path}"
    for path in after.keys() - before.keys():
        if path.endswith(".damaged"):
            yield from set_aside_problems(path, before, after, damage)


def is_of(damage, verdict, entry):
    """Returns whether a checkpoint has the weights that the run has at that step."""
    if entry is None or not isinstance(entry[2], bytes) or not verdict.same_steps:
        return True
    try:
        metadata = normal.read_safetensors(entry[2])[0]
        return damage.world.trajectory.setdefault(metadata["step"], metadata["weights_hash"]) == metadata["weights_hash"]
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
    elif before[origin][2] in damage.world.origin and not damage.unreadable:
        yield f"renames {path}, which is intact"


def judge(result, command, before, after, reference, damage, verdict):
    """Returns what is wrong with how a command on a damaged run ended."""
    problem = result.problem()
    if problem:
        return [problem]
    problems = list(file_problems(before, after))
    if result.status == 2:
        if verdict.must_accept() and not (command.particular and reference.status == 2):
            problems.append("refuses what is whole")
        return problems + list(refusal_problems(result, before, after,
                                                damage.names() if reference.status != 2 else {""}, command.resumes))
    if verdict.must_refuse():
        problems.append(f"goes on, though {verdict.refuse[0]}")
    elif result.status != reference.status and verdict.compared:
        problems.append(f"exit status {result.status} for {reference.status}")
    elif verdict.compared and not command.particular:
        problems += [f"remarks on {name}, which is whole" for name in sorted(verdict.whole)
                     if name in result.message and name not in reference.result.message]
    if command.resumes:
        return problems + list(resume_problems(before, after, reference, damage, verdict))
    problems += write_problems(before, after)
    if result.status == reference.status and verdict.compared:
        problems += read_problems(result, reference, damage)
    return problems
