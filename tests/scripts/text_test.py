"""Texts: what n-grams reach equals an independent program, generated text is the same for a seed, goes on beyond the
model's length, and every hostile text gets a message or is read right. Usage: text_test.py THIMBLE_BINARY SOURCE_DIR"""

import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile

thimble, source = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
sys.path += [f"{source}/tests/fixtures", f"{source}/tests/scripts"]
from fixture_ngram import cross_entropy, kneser_ney
from statistics_list import Report

os.chdir(tempfile.mkdtemp())
open("small.yaml", "w").write("""
task: {name: text, length: 12}
model: {d_model: 8, heads: 2, layers: 1, d_ff: 16, norm: pre, positions: learned, attention: {mask: causal}}
train: {steps: 20, batch: 8, seed: 1, threads: 1}
""")


def run(*arguments, status=0):
    done = subprocess.run([thimble, *arguments], stdin=subprocess.DEVNULL, capture_output=True)
    text = (done.stdout + done.stderr).decode()
    assert done.returncode == status, f"thimble {' '.join(arguments)}: exit status {done.returncode}\n{text}"
    return text


def refused(pattern, *arguments):
    text = " ".join(run(*arguments, status=2).split())
    assert re.search(pattern, text), f"no match for {pattern} in\n{text}"


def generated(*arguments):
    run("generate", *arguments, "--quiet", "--json", "g.json")
    return [h["text"] for h in json.load(open("g.json"))["hypotheses"]]


def compare(name, training, held_out, vocabulary, *arguments):
    """Compares what eval prints of n-grams with the independent program; contexts begin where windows do."""
    run("train", "small.yaml", "--out", name, *arguments)
    run("eval", name, "--split", "test", "--json", "e.json", "--quiet")
    report = json.load(open("e.json"))
    Report("eval", report)
    test = report["test"]
    assert test["labels"] == sum(len(d) - 1 for d in held_out), (name, test)
    for order, key in ((1, "unigram"), (2, "bigram"), (5, "five_gram")):
        expected = cross_entropy(kneser_ney(training, order, vocabulary), held_out)
        assert abs(test["references"][key] / expected - 1) < 1e-12, (name, key, test["references"][key], expected)
    tokens = sum(map(len, training))
    assert test["references"]["counted"] == test["references"]["training_tokens"] == tokens, (name, test, tokens)
    assert math.isclose(test["bits"], test["loss"] / math.log(2), rel_tol=1e-14)
    assert math.isclose(test["perplexity"], math.exp(test["loss"]), rel_tol=1e-14)


def windows(tokens, length):
    return [tokens[i:i + length + 1] for i in range(0, len(tokens) - 1, length)]


# Documents between boundaries, each in one window; then in several.
words = open(f"{source}/configs/data/names.txt").read().split()
random.Random(0).shuffle(words)
parts = {"train": words[:1500], "validation": words[1500:1600], "test": words[1600:1900]}
for part, of in parts.items():
    open(f"{part}.txt", "w").write("\n".join(of) + "\n")
ids = {c: i for i, c in enumerate(sorted(set("".join(sum(parts.values(), []))) | {"\n"}))}
documents = {part: [[ids[c] for c in f"\n{word}\n"] for word in of] for part, of in parts.items()}
files = ["task.file=train.txt", "task.validation_file=validation.txt", "task.test_file=test.txt"]
for length in (16, 4):
    held_out = [w for d in documents["test"] for w in windows(d, length)]
    compare(f"lines{length}", documents["train"], held_out, len(ids), *files, f"task.length={length}")

# A stream of words.
play = open(f"{source}/configs/data/play.txt").read()
streams = [re.findall(r"\w+|[^\w\s]|\n", play[i * 6000:(i + 1) * 6000]) for i in range(3)]
for i in range(3):
    open(f"play{i}.txt", "w").write(play[i * 6000:(i + 1) * 6000])
ids = {w: i for i, w in enumerate(sorted(set(sum(streams, []))))}
numbers = [[ids[w] for w in stream] for stream in streams]
compare("words", [numbers[0]], windows(numbers[2], 12), len(ids), "task.file=play0.txt",
        "task.validation_file=play1.txt", "task.test_file=play2.txt", "task.documents=stream", "task.tokens=words")

assert "no better than a 5-gram: test loss" in run("eval", "words")

# Windows that overlap: what the one before it has is context. n-grams, and the model itself, token by token.
def overlapping(tokens, length, stride):
    """Windows, and how many of their first predictions the one before has."""
    starts = range(0, max(1, len(tokens) - 1 - length + stride), stride)
    return [(tokens[i:i + length + 1], 0 if i == 0 else length - stride) for i in starts]


run("eval", "words", "--split", "test", "--stride", "5", "--json", "e.json", "--quiet")
test = json.load(open("e.json"))["test"]
expected = cross_entropy(kneser_ney([numbers[0]], 5, len(ids)), *zip(*overlapping(numbers[2], 12, 5)))
assert test["labels"] == len(numbers[2]) - 1 and abs(test["references"]["five_gram"] / expected - 1) < 1e-12, (test, expected)
short = play[:61]
open("short.txt", "w").write(short)
run("train", "small.yaml", "--out", "overlap", "task.documents=stream", f"task.file={source}/configs/data/play.txt",
    "task.test_file=short.txt")
for stride in (1, 5, 12):
    run("eval", "overlap", "--split", "test", "--stride", str(stride), "--json", "e.json", "--quiet")
    losses = []
    for window, known in overlapping(short, 12, stride):
        report = json.loads(run("trace", "overlap", window[:-1], "--json", "-"))
        named = [{"\n": "⏎", " ": "␣"}.get(c, c) for c in window]
        assert report["tokens"] == named[:-1]
        rows = [row[report["vocabulary"].index(c)] for row, c in zip(report["probabilities"], named[1:])]
        losses += [-math.log(p) for p in rows[known:]]
    test = json.load(open("e.json"))["test"]
    assert test["labels"] == len(losses) == 60 and abs(test["loss"] - sum(losses) / 60) < 1e-5, (stride, test, sum(losses) / 60)
run("eval", "lines4", "--stride", "1", "--json", "e.json", "--quiet")
assert json.load(open("e.json"))["test"]["labels"] == sum(len(d) - 1 for d in documents["test"])
refused("task.stride .13. must be at most task.length .12.", "eval", "words", "--stride", "13")

# Samples while it trains: the same after a restart, and without an effect on the weights.
run("train", "lines16", "--resume", "train.sample_every=0", "--quiet")
sampled = [*files, "task.length=16", "train.sample_every=5"]
text = run("train", "small.yaml", "--out", "sampled", *sampled)
assert len(re.findall("^step +(5|10|15|20)  samples$", text, re.MULTILINE)) == 4, text


def samples_of(name):
    return {m["step"]: m["texts"] for m in map(json.loads, open(f"{name}/metrics.jsonl")) if m["split"] == "samples"}


assert list(samples_of("sampled")) == [5, 10, 15, 20] and all(len(t) == 5 for t in samples_of("sampled").values())
weights = [re.search("weights +([0-9a-f]+)", run("train", name, "--resume")).group(1) for name in ("sampled", "lines16")]
assert weights[0] == weights[1], weights
assert generated("sampled", "--samples", "5", "--seed", "1") == samples_of("sampled")[20]
run("train", "small.yaml", "--out", "halted", *sampled, "--stop-after", "7")
run("train", "halted", "--resume")
assert samples_of("halted") == samples_of("sampled")
run("inspect", "sampled", "--html", "s.html", "--sequences", "8", "--json", "i.json")
assert '"samples":[{"step":5,' in open("s.html").read() and re.search(r"after so\s+many\s+tokens\s+of\s+its\s+window:\s+1:\s+\d\.\d+\s+\(40\s+labels\)", run("inspect", "sampled", "--sequences", "40", "--details"))
report = json.load(open("i.json"))
Report("inspect", report)
of_positions = [(at["loss"], at["labels"]) for at in report["loss_by_position"] if at["labels"]]
assert len(report["loss_by_position"]) == 16 and sum(n for _, n in of_positions) == report["baseline"]["labels"]
mean = sum(loss * n for loss, n in of_positions) / report["baseline"]["labels"]
assert of_positions[0][1] == 8 and abs(mean - report["baseline"]["loss"]) < 1e-6 * mean, (mean, report["baseline"])
refused("only models of task text draw samples", "train", f"{source}/configs/reverse.yaml", "train.sample_every=5", "--out", "none")

# Text goes on beyond the model's 12 tokens; a seed gives the same text, and further samples change none.
run("train", "small.yaml", "--out", "stream", "task.documents=stream", f"task.file={source}/configs/data/play.txt")
text = generated("stream", "--prompt", "The ", "--tokens", "50")
assert len(text) == 1 and len(text[0]) == 50, text
assert run("generate", "stream", "--prompt", "The ", "--tokens", "50") == f"The {text[0]}\n"
assert generated("stream", "--prompt", "The ", "--tokens", "7")[0] == text[0][:7]
drawn = generated("stream", "--prompt", "The ", "--tokens", "50", "--samples", "3", "--seed", "5")
assert len(set(drawn)) == 3 and generated("stream", "--prompt", "The ", "--tokens", "50", "--samples", "2", "--seed", "5") == drawn[:2]
refused("there is no token é; the vocabulary has", "generate", "stream", "--prompt", "é")
refused("input: is empty", "generate", "stream", "--samples", "1")
names = generated("lines16", "--samples", "20", "--seed", "1")
assert generated("lines16", "--samples", "20", "--seed", "1") == names and len(set(names)) > 10
assert all(re.fullmatch("[a-z]{0,16}", name) for name in names), names
assert "⏎" in run("trace", "lines16", "anna")
refused("at most", "generate", "lines16", "--prompt", "a" * 17)
refused("at most", "generate", "lines16", "--prompt", "abc", "--tokens", "14")

# Hostile texts.
def write(data):
    open("t.txt", "wb").write(data)
    return ["train", "small.yaml", "task.file=t.txt", "--out", tempfile.mkdtemp() + "/r"]


good = "".join(f"w{i}\n" for i in range(300)).encode()
refused(r"t.txt:2: NUL byte at byte 2 of the line", *write(b"ab\na\0\n" + good))
refused(r"t.txt:1: invalid UTF-8 at byte 1", *write(b"\xed\xa0\x80\n" + good))
refused(r"the file is empty", *write(b""))
refused(r"the file is empty", *write(b"\n\n"))
refused(r"line of 100000000 bytes; the maximum is 1048576; set task.documents=stream", *write(b"a" * 10**8))
assert "weights" in run(*write(b"ab" * 10**6), "task.documents=stream", "train.steps=1")
assert "weights" in run(*write(bytes(range(256)) * 20), "task.documents=stream", "task.tokens=bytes")
assert "3 blank lines left out" in run(*write(b"\n\n\n" + good))
assert "trains on all" in run(*write(b"\xef\xbb\xbf" + good.replace(b"\n", b"\r\n")))
hostile = " ".join(f"w{i}" for i in range(100_000)).encode()
refused(r"100000 different tokens; the maximum is 65536; replace rare ones with task.min_count=2", *write(hostile), "task.documents=stream", "task.tokens=words")
assert "<unk>" in run(*write(hostile + b" w1 w2 w3"), "task.documents=stream", "task.tokens=words", "task.min_count=2", "train.steps=1")
refused(r"task.split is .0.9.; give 2 or 3", *write(good), "task.documents=stream", "task.split=0.9")
refused(r"data.train has no effect on a stream", *write(good), "task.documents=stream", "data.train=5")
refused(r"task text requires the causal mask", *write(good), "model.attention.mask=none")
refused(r"one per position.*model.output.per=position", *write(good), "model.output.per=next")

# A text that another has replaced between training and resuming.
run(*write(good)[:3], "--out", "changed", "--stop-after", "5")
write(good + b"another\n")
refused("the training data has changed since the run began", "train", "changed", "--resume")
write(good)
run("train", "changed", "--resume")
print("text_test: ok")
