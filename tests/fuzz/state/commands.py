"""The commands that a case runs, and what is kept of one that did wrong."""
import os
import re


class Command:
    def __init__(self, arguments, resumes=False, own_config=False):
        self.arguments, self.resumes, self.own_config = arguments, resumes, own_config
        self.checkpoint, self.weights = self.value("--checkpoint"), self.value("--weights")
        if self.checkpoint and self.checkpoint.isdigit():
            self.checkpoint = f"step-{self.checkpoint}"
        # Whether a run may be such that the command is refused: a text it cannot read, a split without sequences.
        self.particular = any(option in arguments for option in ("--input", "trace", "patch", "--split"))

    def value(self, option):
        return self.arguments[self.arguments.index(option) + 1] if option in self.arguments else None

    def on(self, run):
        """Returns the command on a run of another name."""
        return Command([run if text == "run" else text for text in self.arguments], self.resumes, self.own_config)

    def __str__(self):
        return "thimble " + " ".join(self.arguments)


class Finding:
    """What a command did wrong; `what` is the first of all problems."""

    def __init__(self, name, family, problems, command, damage, state, result=None):
        self.name, self.family, self.what, self.problems = name, family, problems[0], problems
        self.command, self.damage, self.state = command, damage, state
        self.said = result.message[:400] if result is not None else ""

    def key(self):
        """Returns what findings of the same kind share."""
        command = re.search(r"thimble (\w+)", self.command)
        text = f"{self.family} | {self.damage} | {command[1] if command else ''} | {self.what}"
        text = re.sub(r"step-\d+", "step-N", text)
        text = re.sub(r" at \d+: .*? \|", " |", text, count=1)
        return re.sub(r"(\d+ bytes|line \d+|from [^ |]+|with [^ |]+|-> [^|]*)", "…", text)


def random_command(rng, world, case):
    """Returns a command that a user may run on the run."""
    return resume_command(rng, world, case) if rng.random() < 0.45 else reader(rng, world, case)


def reader(rng, world, case):
    """Returns a command that reads the run."""
    numbers = sorted(re.findall(r"step-([1-9]\d{0,9})\.safetensors", " ".join(case.files())))
    model = ["run"]
    weights = [path for path in case.files() if path.endswith(".safetensors") and path[0] != "-"]
    chosen = rng.random()
    if chosen < 0.3:
        model += ["--checkpoint", rng.choice(["best", "final", *numbers])]
    elif chosen < 0.4 and weights:
        model = ["--weights", rng.choice(weights)]
    kind = rng.choice(("eval", "eval", *(("inspect",) * 2 if world.has_heads() else ()), "compare", "compare", "generate"))
    if kind == "compare" and os.path.isdir(case.at("sister")):
        return Command(["compare", *rng.choice((("run", "sister"), ("sister", "run"))), *output(rng)])
    if kind == "generate" and world.config["model"]["kind"] != "encoder":
        arguments = ["generate", *model, "--input", world.inputs(), "--beams", rng.choice("12"), "--json", "-"]
    elif kind == "inspect":
        written, few = output(rng), ["--sequences", "4"]
        page = few if "--html" in written else []
        report = ["inspect", *model, *few]
        choices = (report, report, ["trace", *model, world.inputs(), *page], ["patch", *model, "--pairs", "4", *page])
        arguments = [*rng.choice(choices), *written]
    else:
        arguments = ["eval", *model, *rng.choice(([], ["--split", "train,test", "--sequences", "4"])), "--json", "-"]
    return Command(arguments)


def output(rng):
    return rng.choice((["--json", "-"], ["--json", "-"], ["--html", "out/page.html"]))


def resume_command(rng, world, case):
    own = rng.random() < 0.25 or not os.path.exists(os.path.join(world.at(case.state), "config.yaml"))
    arguments = world.resume_arguments() if own else ["train", "run", "--resume"]
    if rng.random() < 0.15:
        arguments = arguments + [f"train.steps={world.config['train']['steps'] + 2}"]
    return Command(arguments, True, own)
