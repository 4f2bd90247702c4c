"""`eval --predictions`: its rows, recounted here, give the numbers that eval prints, to the last digit, for each kind of
output; lines of data files, probabilities and cut answers are those of the files, of inspect and of generate.
Usage: predictions_test.py THIMBLE_BINARY SOURCE_DIR"""

import json
import math
import os
import subprocess
import sys
import tempfile

thimble, source = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
os.chdir(tempfile.mkdtemp())
COLUMNS = "split input target answer right probability finished line".split()


def run(*arguments, status=0):
    done = subprocess.run([thimble, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == status, f"thimble {' '.join(arguments)}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def table(*arguments):
    """The rows of the table, by column, and the result of eval."""
    assert run("eval", *arguments, "--predictions", "p.tsv", "--json", "e.json", "--quiet").replace("thimble: ", "")[:9] in ("", "data leak")
    lines = open("p.tsv", newline="").read().split("\n")
    assert lines.pop() == "" and lines.pop(0).split("\t") == COLUMNS
    rows = [line.split("\t") for line in lines]
    assert all(len(row) == len(COLUMNS) for row in rows), "a row of another number of columns"
    return [dict(zip(COLUMNS, row)) for row in rows], json.load(open("e.json"))


def share(flags):
    flags = list(flags)
    return sum(flags) / len(flags)


def check(name, splits, *arguments):
    rows, result = table(name, *arguments)
    assert [row["split"] for row in rows] == [s for s in splits for _ in range(result[s]["sequences"])]
    for split in splits:
        own, numbers = [row for row in rows if row["split"] == split], result[split]
        right = share(row["right"] == "true" for row in own)
        assert all((row["right"] == "true") == (row["answer"] == row["target"]) for row in own)
        assert all(0 < float(row["probability"]) <= 1 for row in own)
        if "exact_match" in numbers:
            assert right == numbers["exact_match"], (name, split, right, numbers)
            assert {row["finished"] for row in own} <= {"true", "false"}
            continue
        pairs = [pair for row in own for pair in zip(row["answer"].split(" "), row["target"].split(" "), strict=True)]
        labeled = [answer == target for answer, target in pairs if target != "."]
        assert all(answer == "." for answer, target in pairs if target == ".")
        assert right == numbers["sequence_accuracy"] and share(labeled) == numbers["accuracy"], (name, split, numbers)
        assert 0 < share(labeled) < 1, f"{name}: says nothing about the count"
        assert all(row["finished"] == "" for row in own)
    return rows


few = ["data.train=200", "data.validation=40", "data.test=60", "train.batch=32", "train.threads=2", "train.evaluate_every=0"]
for name, steps in {"reverse": 150, "masked": 40, "induction": 20}.items():
    run("train", f"{source}/configs/{name}.yaml", *few, f"train.steps={steps}", "train.schedule.warmup=0", "--out", name, "--quiet")
    assert all(row["line"] == "" for row in check(name, ["validation", "test"]))
check("reverse", ["train"], "--split", "train", "--sequences", "70")

# The probability is the product over the tokens of the answer.
row = check("reverse", ["test"], "--split", "test", "--sequences", "3")[2]
run("trace", "reverse", row["input"], "--json", "i.json")
seen = json.load(open("i.json"))
assert row["answer"].split(" ") == seen["predictions"]
assert math.isclose(float(row["probability"]), math.prod(max(p) for p in seen["probabilities"]), rel_tol=2e-5)

# Data files: one answer, generated answers, and the name of a folder that would break a line.
os.mkdir("plain")
words = ["ein", "zwei", "drei", "vier", "\"", "."]
with open("plain/one.tsv", "w") as one, open("many.jsonl", "w") as many:
    for i in range(400):
        tokens = [words[(i * k + i // 7) % 6] for k in (1, 2, 3, 5)[: 2 + i % 3]]
        one.write(" ".join(tokens) + "\t" + words[(i // 3) % 4] + "\n")
        many.write(json.dumps({"input": tokens, "target": tokens[::-1][: 1 + i % 4]}) + "\n")
open("empty.yaml", "w").write("{}\n")
small = ["model.d_model=16", "train.batch=32", "train.optimizer.lr=0.01", "task.name=file"]


def origin(row):
    file, line = row["line"].replace("\\t", "\t").rsplit(":", 1)
    assert os.path.isabs(file)
    return open(file).read().split("\n")[int(line) - 1]


run("train", "empty.yaml", *small, "task.file=plain/one.tsv", "model.output.per=sequence", "train.steps=40", "--out", "plain/one", "--quiet")
os.rename("plain", "a\tb")
for row in check("a\tb/one", ["validation", "test"]):
    assert origin(row) == row["input"] + "\t" + row["target"], row
assert "\\t" in row["line"]
run("train", "empty.yaml", *small, "task.file=many.jsonl", "model.kind=encoder_decoder", "train.steps=100", "--out", "many", "--quiet")
rows = check("many", ["train", "test"], "--split", "train,test")
for row in rows:
    assert json.loads(origin(row)) == {"input": row["input"].split(" "), "target": row["target"].split(" ")}, row


# An answer that is cut at the longest output does not look finished, wherever it is shown.
for seed in range(20):
    run("train", "empty.yaml", *small, "task.file=many.jsonl", "model.kind=encoder_decoder", "train.steps=1", f"train.seed={seed}",
        "--out", f"cut{seed}", "--quiet")
    cut = [row for row in check(f"cut{seed}", ["test"], "--split", "test") if row["finished"] == "false"]
    if cut:
        os.rename(f"cut{seed}", "cut")
        break
for name, row in (("many", next(row for row in check("many", ["test"], "--split", "test") if row["finished"] == "true")), ("cut", cut[0])):
    said = run("generate", name, "--input", row["input"], "--json", "g.json")
    best = json.load(open("g.json"))["hypotheses"][0]
    assert " ".join(best["tokens"]) == row["answer"] and best["finished"] == (row["finished"] == "true")
    assert math.isclose(math.exp(best["log_probability"]), float(row["probability"]), rel_tol=1e-5)
    assert said.split("\n")[0].endswith(" …") == (name == "cut"), said
    shown = run("trace", name, row["input"], "--json", "i.json", "--html", "i.html")
    assert json.load(open("i.json"))["finished"] == (name == "many") and ("…" in shown) == (name == "cut"), shown
    assert '"finished":' + ("true" if name == "many" else "false") in open("i.html").read()
    assert "finished" not in run("trace", "reverse", "0 1 2", "--json", "-")
beams = run("generate", "cut", "--input", cut[0]["input"], "--beams", "4", "--json", "g.json").strip().split("\n")
assert [line.endswith(" …") for line in beams] == [not h["finished"] for h in json.load(open("g.json"))["hypotheses"]]

# An output like any other: nothing is replaced that the command reads, or that a run has.
for file in ("many/metrics.jsonl", "many.jsonl"):
    assert "--predictions" in run("eval", "many", "--predictions", file, status=2)
assert "is the file of" in run("eval", "many", "--predictions", "x", "--json", "x", status=2)
assert "cannot be written" in run("eval", "many", "--predictions", "none/x", status=2)
print("predictions: ok")
