"""Sweeps: a directory with many runs, finished, half done or killed; then damaged as a run is."""
import json
import os
import random
import re
import shutil

import configs
import oracle
from commands import Command, Finding
from mutations import Mutation, mutate, read, write
from program import changes, remove
from world import Case, Unusable, World

CASES = 16


class SweepWorld(World):
    """The directory of the sweep takes the place of that of a run."""

    def build(self):
        rng = self.rng
        self.config["train"]["threads"] = 1
        self.config["train"]["steps"] = 4
        self.config["train"].pop("schedule", None)
        sweep = "config: cfg.yaml\nseeds: [1, 2]\n"
        chosen = rng.random()
        if chosen < 0.4:
            sweep += "grid: {train.optimizer.lr: [0.01, 0.02]}\n"
        elif chosen < 0.7:
            self.config["train"]["evaluate_every"] = 2
            sweep += "grid: {train.optimizer.lr: [0.01, 0.02]}\nhalving: {steps: [2]}\n"
        self.files = {"cfg.yaml": configs.to_yaml(self.config), "sweep.yaml": sweep, **self.data}
        result = self.sweep(self.files)
        if result.status not in (0, 1):
            raise Unusable(result.message)
        os.makedirs(self.at("files"))
        for name in self.files:
            shutil.copy(os.path.join(self.place, name), self.at("files", name))
        self.keep("whole")
        self.states.append("whole")
        for name, options in (("part", {"more": ("--max-runs", "1")}), ("killed", {"faults": f"kill:{rng.randint(1, 30)}"})):
            self.sweep(self.files, **options)
            # A claim without content may be another machine's, and is waited for.
            claims = [path for path, entry in self.snapshot().items() if ".claim-" in path and not entry[2]]
            if os.path.exists(os.path.join(self.place, "run/sweep.json")) and not claims:
                self.keep(name)
                self.states.append(name)
        self.sweep(dict(self.files, **{"sweep.yaml": sweep.replace("[1, 2]", "[3, 4]")}))
        self.keep("other seeds")
        self.donors = {"another sweep": "other seeds", "this sweep ended": "whole"}
        self.origin, self.trajectory = {}, {}

    def sweep(self, files, more=(), **options):
        remove(self.place)
        os.makedirs(os.path.join(self.place, "out"))
        for name, text in files.items():
            with open(os.path.join(self.place, name), "w", encoding="utf-8") as file:
                file.write(text)
        return self.program.run([*self.resume_arguments(), *more], self.place, **options)

    @staticmethod
    def resume_arguments():
        return ["sweep", "sweep.yaml", "--out", "run", "--jobs", "1", "--json", "-"]


def lost_list(rng, case):
    """Without sweep.json, which the sweep makes again."""
    if "run/sweep.json" not in case.files():
        return None
    os.remove(case.at("run/sweep.json"))
    return Mutation("lost", "run/sweep.json")


def longer_run(rng, case):
    """A run that was trained longer by hand; a mark says so."""
    runs = [path for path in case.files() if re.match(r"run/runs/[^/]+/summary\.json$", path)]
    if not runs:
        return None
    run = os.path.dirname(rng.choice(runs))
    result = case.world.program.run(["train", run, "--resume", "train.steps=6"], case.world.place)
    return Mutation("longer", run + "/summary.json") if result.status in (0, 1) else None


def spaced_record(rng, case):
    records = [path for path in case.files() if re.match(r"run/(runs/[^/]+|sweep)\.json$", path)]
    if not records:
        return None
    path = rng.choice(records)
    text = json.dumps(json.loads(read(case, path)), indent=3, separators=(" , ", " :  "), ensure_ascii=False)
    write(case, path, text.replace("\n", "\r\n").encode())
    return Mutation("spaced", path)


ALLOWED = (lost_list, longer_run, spaced_record)


def random_command(rng, case):
    kind = rng.random()
    if kind < 0.5:
        return Command(case.world.resume_arguments(), resumes=True)
    if kind < 0.7:
        return Command(["sweep", "--status", "run", "--json", "-"])
    if kind < 0.85:
        return Command(["compare", "run", "--json", "-"])
    runs = sorted({path.split("/")[2] for path in case.files() if path.startswith("run/runs/") and path.count("/") > 2})
    return Command(["eval", f"run/runs/{rng.choice(runs)}", "--json", "-"] if runs else ["compare", "run", "--json", "-"])


def judge(result, command, before, after, reference, damage, kind):
    problem = result.problem()
    if problem:
        return [problem]
    # What another process claims, or could not be trained, is no lie: status and exit status say so.
    failed = result.status == 1 and reference.status == 0 and re.search(r"failed|interrupted", result.out + result.err)
    problems = [what for what in oracle.file_problems(before, after)
                if not what.startswith("leaves a torn")]
    for change in changes(before, after):
        path = change[1:]
        if change[0] == "-" and path in damage.world.intact_paths and path not in damage.touched and \
                not (oracle.STEP.search(path) or oracle.LEFTOVER.search(path)):
            problems.append(f"removes {path}")
    for path in after.keys() - before.keys():
        if path.endswith(".damaged") and path.removesuffix(".damaged") not in damage.touched:
            problems.append(f"renames {path}, which was not damaged")
    if result.status == 2:
        if kind in ALLOWED and reference.status != 2 and (kind is not lost_list or command.resumes):
            problems.append("refuses what is whole")
        if not oracle.has_message(result):
            problems.append("refuses without a message")
        if not command.resumes:
            problems += oracle.refusal_problems(result, before, after, damage.names())
    elif kind is longer_run:
        if result.status not in (0, 1):
            problems.append(f"exit status {result.status} for {reference.status}")
    elif failed:
        pass
    elif result.status != reference.status:
        problems.append(f"exit status {result.status} for {reference.status}")
    elif result.out != reference.out and "--status" not in command.arguments:
        remarks = " ".join([result.message, *re.findall(r'"remark": "(.*)"', result.out)])
        if not any(os.path.basename(path) in remarks for path in damage.touched):
            problems.append("other numbers")
    elif command.resumes:
        problems += [f"ends with another {path}" for path, entry in sorted(reference.after.items())
                     if entry[0] == "file" and path.startswith("run/") and path not in damage.touched and
                     path.endswith(("final.safetensors", "metrics.jsonl", "summary.json")) and
                     not oracle.same(path, entry[2], (oracle.resolve(after, path) or ("", 0, None))[2])]
    return problems


def run_case(name, world, found):
    rng = random.Random(f"case {name}")
    state = rng.choice(world.states)
    case = Case(world, state)
    world.restore(state)
    kind = mutate if rng.random() < 0.7 else rng.choice(ALLOWED)
    made = kind(rng, case)
    if made is None or ".claim-" in made.path or made.deleted and made.path.endswith("metrics.jsonl"):
        return "none"  # a claim of another machine is waited for; a run without metrics has no curves
    damage = oracle.Damage(world, [made], {})
    before = world.snapshot()
    world.intact_paths = {path for path, entry in before.items() if entry[0] == "file"}
    commands = sorted((random_command(rng, case) for _ in range(2)), key=lambda command: command.resumes)
    for command in commands:
        if made.deleted and made.path.endswith(".safetensors") and not command.resumes:
            continue  # without its newest checkpoint a run is as it was before
        if command.resumes and damage.touched & set(world.data) and not any(path.count("/") > 2 for path in before):
            break  # no run has begun, so the data may change
        reference = world.reference(state, command.arguments)
        result = world.execute(command.arguments)
        after = world.snapshot()
        problems = judge(result, command, before, after, reference, damage, kind)
        if problems:
            found.append(Finding(name, "sweep", problems, str(command), str(made), state, result))
        if command.resumes or changes(before, after):
            break
    return "sweep"


def control(name, world, state, findings):
    """Resumes an undamaged state: it must show what a sweep shows that was never interrupted."""
    reference = world.reference(state, world.resume_arguments())
    if reference.out != world.reference("whole", world.resume_arguments()).out:
        findings.append(Finding(name, "sweep", ["other numbers"], "thimble sweep", "none", state, reference.result))
