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
sys.path += [f"{source}/scripts", f"{source}/tests/scripts"]
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
for name, i in (("train", 0), ("validation", 1), ("test", 2)):
    open(f"{name}.txt", "w").write(play[i * 6000:(i + 1) * 6000])
ids = {w: i for i, w in enumerate(sorted(set(sum(streams, []))))}
numbers = [[ids[w] for w in stream] for stream in streams]
compare("words", [numbers[0]], windows(numbers[2], 12), len(ids), *files, "task.documents=stream", "task.tokens=words")

assert "no better than a 5-gram: test loss" in run("eval", "words")

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
assert "⏎" in run("inspect", "lines16", "--input", "anna")
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
