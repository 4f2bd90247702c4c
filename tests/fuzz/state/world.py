"""A config, the runs trained with it, and what every command must answer about them."""
import contextlib
import os
import random
import shutil

import configs
import normal
from program import changes, copy, remove, snapshot

MISSING_DATA = "a config with the path of a file that does not exist"
SHOWN = ("out",)  # outputs that the user asked for


class Reference:
    """What a command does to an undamaged run."""

    def __init__(self, result, before, after):
        self.result, self.status, self.out = result, result.status, result.out
        self.after = after
        self.changes = set(changes(before, after))


class Unusable(Exception):
    """The random config is refused, or does not train."""


class World:
    def __init__(self, name, program, root):
        self.name, self.program, self.root = name, program, root
        self.rng = random.Random(f"world {name}")
        self.place, self.stored = os.path.join(root, "case"), os.path.join(root, "world")
        self.problems = []  # of undamaged runs: (what, detail)
        self.references, self.counts, self.shown = {}, {}, {}
        remove(self.stored)
        os.makedirs(self.stored)
        self.config, self.data = configs.random_config(self.rng)
        self.states, self.donors = [], {}
        self.build()

    # Folders of the world: files, sister, and a run for each state and donor.
    def at(self, *path):
        return os.path.join(self.stored, *path)

    def train(self, *arguments, config=None, data=None, **options):
        """Trains in an empty place; returns the result."""
        remove(self.place)
        os.makedirs(os.path.join(self.place, "out"))
        for name, text in {"cfg.yaml": configs.to_yaml(config or self.config), **(data or self.data)}.items():
            with open(os.path.join(self.place, name), "w", encoding="utf-8") as file:
                file.write(text)
        return self.program.run(["train", "cfg.yaml", "--out", "run", *arguments], self.place, **options)

    def keep(self, name):
        shutil.move(os.path.join(self.place, "run"), self.at(name))

    def build(self):
        rng, steps = self.rng, self.config["train"]["steps"]
        counted = os.path.join(self.root, "counts")
        result = self.train(count=self.fresh(counted))
        if result.status not in (0, 1):
            raise Unusable(result.message)
        self.counts["train"] = self.read_counts(counted)
        os.makedirs(self.at("files"))
        for name in ("cfg.yaml", *self.data):
            shutil.copy(os.path.join(self.place, name), self.at("files", name))
        copy(self.at("files"), self.at("shown"))
        os.mkdir(self.at("shown/run"))
        self.keep("whole")
        self.states.append("whole")
        if self.train("--stop-after", str(rng.randint(1, steps - 1))).status == 0:
            self.keep("part")
            self.states.append("part")
        if self.train(f"train.seed={self.config['train']['seed'] + 1}").status in (0, 1):
            self.keep("sister")
            self.donors["another seed"] = "sister"
        if self.train(f"train.steps={steps + 2}", "train.patience=0", "train.target.accuracy=0",
                      "train.target.loss=0").status == 0:
            self.keep("longer")
            self.donors["a longer run"] = "longer"
        if self.data:
            name = self.config["task"]["file"]
            lines = self.data[name].splitlines(True)
            changed = dict(self.data, **{name: "".join(lines[1:])})
            if self.train(data=changed).status in (0, 1):
                self.keep("other data")
                self.donors["other data"] = "other data"
        self.donors["this run ended"] = "whole"  # a donor is only used in other states
        if "part" in self.states:
            self.donors["this run before"] = "part"
        self.kill()
        self.find_origins()
        self.trajectory = {}  # {step: hash of the weights}
        for data in (data for data, origin in self.origin.items() if origin == "own" and data[:1] != b"{"):
            metadata = normal.read_safetensors(data)[0]
            if self.trajectory.setdefault(metadata["step"], metadata["weights_hash"]) != metadata["weights_hash"]:
                self.problems.append((f"two states of step {metadata['step']}", "weights differ"))

    def has_heads(self):
        return self.config["model"].get("attention", {}).get("score") != "none"

    def same_steps(self, arguments):
        """Returns whether a run with these arguments has the weights of all others at each step: a schedule follows
        train.steps."""
        changed = {text.split("=")[1] for text in arguments if text.startswith("train.steps=")}
        return "schedule" not in self.config["train"] or changed <= {str(self.config["train"]["steps"])}

    def find_origins(self):
        """Finds whose each stored checkpoint or summary is: {content: own, kin or foreign}."""
        self.origin = {}
        for folder in os.listdir(self.stored):
            origin = "own" if folder in self.states else "kin" if folder == "longer" else "foreign"
            self.origin |= {data: origin for path, (kind, _, data) in snapshot(self.at(folder)).items()
                            if kind == "file" and path.endswith((".safetensors", "summary.json"))}

    def kill(self):
        """Adds states of runs that were killed, some of them again while they were resumed."""
        for number in range(3):
            kind = self.rng.choice(("kill", "kill", "term", "int"))
            at = self.rng.randint(1, self.counts["train"]["kill"])
            result = self.train(faults=f"{kind}:{at}")
            if result.status not in (-9, -15, -2, 130, 0, 1, 2) or result.status == 0 and kind == "kill":
                self.problems.append((f"{kind} ends with {result.status}", f"{kind}:{at}"))
            run = os.path.join(self.place, "run")
            if not os.path.isdir(run):
                continue
            if self.rng.random() < 0.3 and os.path.exists(os.path.join(run, "config.yaml")):
                again = f"kill:{self.rng.randint(1, 40)}"
                self.program.run(self.resume_arguments(), self.place, faults=again)
                at = f"{at}, {again}"
            self.check_torn(f"{kind}:{at}")
            self.keep(f"killed{number}")
            self.states.append(f"killed{number}")

    def check_torn(self, detail):
        for path, (kind, _, data) in snapshot(os.path.join(self.place, "run")).items():
            if kind != "file" or path.endswith((".tmp", ".lock")):
                continue
            try:
                normal.normal(path, data)
            except ValueError as error:
                self.problems.append((f"killed: {path}: {error}", detail))

    @staticmethod
    def resume_arguments():
        return ["train", "cfg.yaml", "--out", "run", "--resume"]

    @staticmethod
    def fresh(path):
        if os.path.exists(path):
            os.remove(path)
        return path

    @staticmethod
    def read_counts(path):
        with open(path, encoding="utf-8") as file:
            return {kind: int(number) for kind, number in (line.split() for line in file)}

    def original(self, state, path):
        """Returns the content of a file of the place as it was before the damage, or None."""
        stored = self.at(state, path[4:]) if path.startswith("run/") else self.at("files", path)
        if not os.path.isfile(stored):
            return None
        with open(stored, "rb") as file:
            return file.read()

    def restore(self, state):
        """Puts the undamaged state into the place where commands run."""
        remove(self.place)
        copy(self.at("files"), self.place)
        copy(self.at(state), os.path.join(self.place, "run"))
        if os.path.isdir(self.at("sister")):
            copy(self.at("sister"), os.path.join(self.place, "sister"))
        os.mkdir(os.path.join(self.place, "out"))

    def execute(self, arguments, **options):
        """Runs a command in the place; what it writes to out/ counts as printed."""
        result = self.program.run(arguments, self.place, **options)
        folder = os.path.join(self.place, "out")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8", errors="replace") as file:
                result.out += f"\n{name}:\n{file.read()}"
            os.remove(path)
        return result

    def snapshot(self):
        return snapshot(self.place, SHOWN)

    def reference(self, state, arguments, without=()):
        """Returns what the command does in the undamaged state, or in one that lacks some files."""
        key = (state, *without, *arguments)
        if key not in self.references:
            with self.undamaged(state):
                for path in sorted(set(without)):
                    with contextlib.suppress(FileNotFoundError):  # a file that the damage made, and the program set aside
                        os.remove(os.path.join(self.place, path))
                before = self.snapshot()
                result = self.execute(arguments)
                self.references[key] = Reference(result, before, self.snapshot())
        return self.references[key]

    @contextlib.contextmanager
    def undamaged(self, state):
        """Puts an undamaged state into the place for a while."""
        aside = self.place + " aside"
        if os.path.lexists(self.place):
            os.rename(self.place, aside)
        self.restore(state)
        yield
        remove(self.place)
        if os.path.lexists(aside):
            os.rename(aside, self.place)

    def counts_of(self, state, arguments):
        """Returns how many calls of each kind the command makes."""
        key = (state, *arguments)
        if key not in self.counts:
            path = self.fresh(os.path.join(self.root, "counts"))
            with self.undamaged(state):
                self.program.run(arguments, self.place, count=path)
            self.counts[key] = self.read_counts(path) if os.path.exists(path) else {}
        return self.counts[key]

    def config_of(self, text):
        """Returns the values of a config as the program reads it, or None if it refuses it."""
        if text not in self.shown:
            with open(self.at("shown/run/config.yaml"), "wb") as file:
                file.write(text)
            result = self.program.run(["config", "show", "run/config.yaml"], self.at("shown"))
            if result.status != 0:  # which may be due to the data as they are now
                return MISSING_DATA if "No such file" in result.message else None
            self.shown[text] = normal.config_values(result.out)
        return self.shown[text]

    def inputs(self):
        """Returns a text that the model can read."""
        if self.data:
            line = self.data[self.config["task"]["file"]].splitlines()[0]
            if not line.startswith("{"):
                return line.split("\t")[0]
        return "1 2 3"


class Case:
    """A state in its place, ready to be damaged."""

    def __init__(self, world, state):
        self.world, self.state = world, state
        self.donors = {name: folder for name, folder in world.donors.items() if folder != state}

    def at(self, path):
        return os.path.join(self.world.place, path)

    def files(self):
        """Returns the files that can be damaged: those of the run, and the data."""
        found = [path for path in self.world.data if os.path.isfile(self.at(path))]
        for parent, _, names in os.walk(self.at("run")):
            found += [os.path.relpath(os.path.join(parent, name), self.world.place) for name in names]
        return sorted(path for path in found if os.path.isfile(self.at(path)) and not os.path.islink(self.at(path))
                      and os.access(self.at(path), os.R_OK | os.W_OK))

    def has_checkpoint(self):
        """Returns whether the undamaged state has one."""
        folder = self.world.at(self.state, "checkpoints")
        return os.path.isdir(folder) and any(name.endswith(".safetensors") for name in os.listdir(folder))

    def entries(self):
        """Returns the names of the run's folder of checkpoints, as paths."""
        folder = "run/checkpoints"
        try:
            return sorted(f"{folder}/{name}" for name in os.listdir(self.at(folder)))
        except OSError:
            return []

    @contextlib.contextmanager
    def moved_back(self, place):
        """Puts a run that was moved where it was, for a while."""
        if place == "run" or not os.path.isdir(self.at(place)):
            yield
            return
        os.rename(self.at(place), self.at("run"))
        os.rmdir(self.at(os.path.dirname(place)))
        yield
        os.mkdir(self.at(os.path.dirname(place)))
        os.rename(self.at("run"), self.at(place))

    def original(self, path):
        return self.world.original(self.state, path)

    def read_now(self, path):
        """Returns the content of a file, False if it may not be read."""
        try:
            with open(self.at(path), "rb") as file:
                return file.read()
        except OSError:
            return False

    def donor_files(self, donor):
        root = self.world.at(self.donors[donor])
        return sorted(os.path.relpath(os.path.join(parent, name), root)
                      for parent, _, names in os.walk(root) for name in names)

    def donor_read(self, donor, name):
        with open(os.path.join(self.world.at(self.donors[donor]), name), "rb") as file:
            return file.read()
