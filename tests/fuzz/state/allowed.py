"""Changes that the docs allow. Each function returns what it did, or None, as in mutations.py."""
import json
import os
import random
import re

from mutations import Mutation, read, write

CONFIG, DATA, METRICS, SUMMARY = "run/config.yaml", "run/data.json", "run/metrics.jsonl", "run/summary.json"


def edited(case, path, change):
    """Changes the text of a file; returns the change, or None if there is nothing to change."""
    if path not in case.files():
        return None
    text = read(case, path).decode("utf-8")
    changed = change(text)
    if changed == text:
        return None
    write(case, path, changed.encode("utf-8"))
    return Mutation("", path)


def comment(rng, case):
    return edited(case, CONFIG, lambda text: "# mine\n" + re.sub(r"(\n  seed: \d+)", r"\1  # a comment", text))


def order(rng, case):
    def shuffled(text):
        sections = re.split(r"^(?=\w)", text, flags=re.M)
        rng.shuffle(sections)
        return "".join(sections)
    return edited(case, CONFIG, shuffled)


def indented(rng, case):
    return edited(case, CONFIG, lambda text: re.sub(r"^( +)", r"\1\1", text, flags=re.M) + "\n")


def line_ends(rng, case):
    return edited(case, rng.choice((CONFIG, DATA, METRICS, METRICS, SUMMARY)), lambda text: text.replace("\n", "\r\n"))


def spaced_json(rng, case):
    path = rng.choice((DATA, SUMMARY))
    return edited(case, path, lambda text: json.dumps(json.loads(text), sort_keys=True, indent=rng.choice((None, 1, 4)),
                                                      ensure_ascii=False) + "\n\n")


def spaced_metrics(rng, case):
    return edited(case, METRICS, lambda text: re.sub(r'([:,])(?=["{\[\d])', r"\1 ", text))


def blank_lines(rng, case):
    return edited(case, METRICS, lambda text: text.replace("\n", "\n\n", rng.randint(1, 3)) + rng.choice(("", "\n", " \n")))


def later_lines(rng, case):
    line = '{"step":90,"split":"train","loss":1.0,"accuracy":0.5,"sequences":4,"labels":4,"seconds":1.0}\n'
    return edited(case, METRICS, lambda text: text + line) if case.has_checkpoint() else None


def cut_metrics(rng, case):
    """Metrics that lack their last lines."""
    return edited(case, METRICS, lambda text: "".join(text.splitlines(True)[:rng.randint(0, text.count("\n"))]))


def missing(rng, case):
    path = rng.choice((CONFIG, CONFIG, METRICS, METRICS, SUMMARY))
    if path not in case.files() or not case.has_checkpoint():
        return None
    os.remove(case.at(path))
    return Mutation("", path)


def one_checkpoint(rng, case):
    """All checkpoints but one are gone."""
    files = [path for path in case.files() if path.endswith(".safetensors")]
    if len(files) < 2:
        return None
    gone = rng.sample(files, len(files) - 1)
    for path in gone:
        os.remove(case.at(path))
    mutation = Mutation("", gone[0], "", gone)
    mutation.deleted = set(gone)
    return mutation


def changed_metrics(rng, case):
    """An edited log: a value, line ends, a line that is missing, lines twice."""
    def again(text):
        return text + text[:text.rfind("\n", 0, len(text) // 2) + 1]
    edit = rng.choice((lambda text: re.sub(r'"loss":\d', '"loss":7', text, count=1), lambda text: text.replace("\n", "\r\n"),
                       lambda text: text[text.find("\n") + 1:], again))
    return edited(case, METRICS, edit)


def legal_key(rng, case):
    key, value = rng.choice((("evaluate_every", 7), ("checkpoint_every", 4), ("threads", 2), ("checkpoint_series", "true")))
    mutation = edited(case, CONFIG, lambda text: re.sub(rf"\n  {key}: .*", f"\n  {key}: {value}", text))
    if mutation:
        mutation.keys = {f"train.{key}": str(value)}
    return mutation


def snapshot(rng, case):
    """Hard links to all files, as of cp -al. They must keep their bytes."""
    for path in case.files():
        if path.startswith("run/"):
            os.makedirs(os.path.dirname(case.at("snapshot/" + path)), exist_ok=True)
            os.link(case.at(path), case.at("snapshot/" + path))
    return Mutation("", "run")


def moved(rng, case):
    if case.world.data:
        return None  # whose paths are relative
    os.makedirs(case.at("another place"))
    os.rename(case.at("run"), case.at("another place/run"))
    mutation = Mutation("", "run")
    mutation.place = "another place/run"
    return mutation


def notes(rng, case):
    for path in ("run/notes.txt", "run/checkpoints/notes.txt"):
        if os.path.isdir(os.path.dirname(case.at(path))):
            write(case, path, b"mine\n")
    return Mutation("", "run/notes.txt", "", ("run/checkpoints/notes.txt",))


KINDS = (order, indented, line_ends, spaced_json, spaced_metrics, blank_lines, later_lines, cut_metrics, missing,
         missing, one_checkpoint, changed_metrics, legal_key, snapshot, moved, notes)


def change(rng, case, number):
    """Makes the change of a number: the most common one comes first, the others in an order of the world's."""
    kinds = (comment, *random.Random(case.world.name).sample(KINDS, len(KINDS)))
    kind = kinds[number % len(kinds)]
    made = kind(rng, case)
    if made is not None:
        made.kind, made.allowed = kind.__name__, True
    return made
