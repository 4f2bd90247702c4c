"""Runs the clients that docs/serve.md shows, and tries to break the protocol.

Usage: serve_test.py THIMBLE_BINARY SOURCE_DIR
"""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

program, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
folder = tempfile.TemporaryDirectory()
os.chdir(folder.name)
os.symlink(program, "thimble")
os.environ["PATH"] = folder.name + os.pathsep + os.environ["PATH"]
subprocess.run([program, "train", "reverse", "train.steps=3", "train.schedule.warmup=1", "--out", "run", "--quiet"], check=True)
blocks = re.findall(r"```(python|js)\n(.*?)```", (source / "docs/serve.md").read_text("utf-8"), re.S)
assert [language for language, _ in blocks] == ["python", "js"]
for language, text in blocks:
    runner = sys.executable if language == "python" else shutil.which("node")
    if runner is None:
        print("serve_test: node is not installed; its client was not run")
        continue
    def client(shown, other, code=text):
        assert other == shown or code.count(shown) == 1, shown
        file = pathlib.Path("client.cjs" if language == "js" else "client.py")
        file.write_text(code.replace(shown, other), "utf-8")
        return subprocess.run([runner, file, "run"], capture_output=True, text=True, timeout=60)

    said = client("", "")
    assert said.returncode == 0, said.stderr
    assert dict(line.split() for line in said.stdout.splitlines()) == {"logits": "50", "blocks.0.attn.hook_pattern": "25"}, said.stdout
    said = client("1, 4, 1, 5]", "1, 4, 1, 99]")
    assert "ids: token 99 at (0, 4)" in said.stdout + said.stderr, said
    if language == "js":  # in several messages
        said = client("[1, 5], [3, 1, 4, 1, 5]", "[4000, 16], Array(64000).fill(1)")
        counts = [int(line.split()[1]) for line in said.stdout.splitlines() if line.startswith("logits ")]
        assert len(counts) > 1 and sum(counts) == 640000, said


def message(request, header=(), data=b""):
    text = json.dumps({"__metadata__": {"thimble": request if isinstance(request, str) else json.dumps(request)}, **dict(header)}).encode()
    return struct.pack("<Q", len(text)) + text + data


def answers(sent, status, *options):
    """Sends bytes, and returns the replies; the program must end with that status in time."""
    with open("sent", "wb") as file:
        file.write(sent)
    with open("sent", "rb") as file:
        said = subprocess.run([program, "serve", "run", *options], stdin=file, capture_output=True, timeout=60)
    assert said.returncode == status, (said.returncode, said.stderr, sent[:200])
    assert said.stderr == b"" if status == 0 else said.stderr.startswith(b"thimble: "), said.stderr
    out, replies = said.stdout, []
    while out:
        size = struct.unpack("<Q", out[:8])[0]
        header = json.loads(out[8:8 + size])
        replies.append(json.loads(header.pop("__metadata__")["thimble"]))
        out = out[8 + size + max((t["data_offsets"][1] for t in header.values()), default=0):]
    return replies


ids = {"ids": {"dtype": "I32", "shape": [1, 2], "data_offsets": [0, 8]}}
good = message({"do": "forward"}, ids, struct.pack("<2i", 1, 2))
assert [reply["ok"] for reply in answers(good, 0)] == [True]
assert answers(b"", 0) == []
assert answers(message({"do": "close"}) + b"rest", 0) == [{"ok": True}]

described = [answers(message({"do": "describe"}), 0, *options)[0]["weights"] for options in [(), ("--checkpoint", "init")]]
assert described == ["run/checkpoints/final.safetensors", None], described

# An error is answered, and what follows it, too.
for bad in [message({"do": "forwards"}), message("no JSON"), message("[]"), message({"do": "forward"}), message({"do": "forward", "retrun": []}, ids, bytes(8)),
            message({"do": "forward", "return": "logits"}, ids, bytes(8)), message({"do": "data", "split": "tests"}),
            message({"do": "data", "indices": [-1]}), message({"do": "data", "first": 10 ** 6}), message({"do": "tokens", "texts": ["1 x"]}),
            message({"do": "tokens", "texts": [""]}), message({"do": "tokens", "texts": ["1"], "targets": ["1", "2"]}),
            message({"do": "tokens", "texts": ["1 2"], "targets": ["1"]}),
            message({"do": "data", "split": "train", "count": 2 ** 63 - 1}), message({"do": "data", "first": 2 ** 63 - 1}), message('{"do": "forward", "replace": ' + "[" * 10000 + "]" * 10000 + "}"),
            message({"do": "forward"}, {**ids, "sources": {"dtype": "I32", "shape": [1, 2], "data_offsets": [8, 16]}}, bytes(16)),
            message({"do": "forward", "replace": [1]}, ids, bytes(8)), message({"do": "forward", "replace": [{"site": "logits", "valeus": "x"}]}, ids, bytes(8)),
            *[message({"do": "forward", "replace": [{"site": "logits", **one}]}, ids, bytes(8))
              for one in ({"mean": 0}, {"mean": -1}, {"mean": 2 ** 70}, {"mean": 1.5}, {"mean": 9, "values": "ids"})],
            *[message({"do": "forward", **one}, ids, bytes(8))  # follows from what the norm reads, if there is one
              for one in ({"replace": [{"site": "ln_final.hook_scale"}]}, {"gradients": ["ln_final.hook_scale"]})],
            message({"do": "forward"}, {"ids": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}}, bytes(8)),
            message({"do": "forward"}, {"ids": {"dtype": "I32", "shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
            *[message({"do": "forward", "positions": one}, ids, bytes(8)) for one in ([2], [-1], [1.5], 1)],
            message({"do": "texts"}, {**ids, "lenghts": {"dtype": "I32", "shape": [1], "data_offsets": [8, 12]}}, bytes(12)),
            message({"do": "forward"}, {"ids": {"dtype": "I32", "shape": [1, 3], "data_offsets": [0, 8]}}, bytes(8)),
            message({"do": "forward"}, {"ids": {"dtype": "I32", "shape": [0, 2], "data_offsets": [0, 0]}}, b""),
            message({"do": "forward"}, {"ids": {"dtype": "I32", "shape": [2, 0], "data_offsets": [0, 0]}}, b""),
            message({"do": "forward"}, ids, struct.pack("<2i", 1, -7)), message({"do": "texts"}, ids, struct.pack("<2i", 1, 99))]:
    first, second = answers(bad + good, 0)
    assert not first["ok"] and first["error"]["message"] and first["error"]["problems"], first
    assert second["ok"], (bad, second)

for arrays, said in (({"idz": ids["ids"]}, "there is no key idz, did you mean ids?"),
                     ({"ids": {**ids["ids"], "dtype": "F32"}}, "cannot be read as integers; store I32 or I64"),
                     ({**ids, "lenght": {"dtype": "I32", "shape": [0], "data_offsets": [8, 8]}}, "no key lenght, did you mean lengths?")):
    assert said in answers(message({"do": "forward"}, arrays, bytes(8)), 0)[0]["error"]["message"], said

# At a terminal nobody types a message, so it does not wait for one.
ours, theirs = os.openpty()
said = subprocess.run([program, "serve", "run"], stdin=theirs, capture_output=True, timeout=60)
assert said.returncode == 2 and not said.stdout and b"not a terminal" in said.stderr, said

# Where the place of the next message is lost, the program says so and ends.
for lost in [b"x", struct.pack("<Q", 0), struct.pack("<Q", 2 ** 63), good[:20], good[:-1], message({"do": "forward"}, {"ids": {"dtype": "I32", "shape": [1, 2], "data_offsets": [0, 2 ** 64 - 50]}}, bytes(8)),
             message({"do": "forward"}, {"ids": {"dtype": "I32", "shape": [1, 2], "data_offsets": [0, 2 ** 45]}}, bytes(8)), struct.pack("<Q", 30) + b"x" * 30, b"GET / HTTP/1.1\r\n\r\n",
             struct.pack("<Q", 2 ** 64 - 1), struct.pack("<Q", 10 ** 9), *(struct.pack("<Q", len(text)) + text for text in (b"{", b"{]x}", b"[]", b'{"ids": {"dtype": "I32", "shape": [1]}} ')),
             b"\xff" * 1000, *(good[:size] for size in (1, 7, 8, 9, 30, -9, -8))]:
    replies = answers(good + lost, 2)
    assert [reply["ok"] for reply in replies] == [True, False], replies
    assert replies[1]["error"]["message"] and set(replies[1]["error"]) == {"type", "message", "problems"}, replies

# Random damage never hangs, kills or silences it.
dice = random.Random(7)
for _ in range(150):
    damaged = bytearray(message({"do": "forward", "return": ["*"], "gradients": ["*"]}, ids, struct.pack("<2i", 1, 2)))
    for _ in range(dice.randint(1, 4)):
        damaged[dice.randrange(len(damaged))] = dice.randrange(256)
    with subprocess.Popen([program, "serve", "run"], stdin=-1, stdout=-1, stderr=-1) as process:
        process.communicate(bytes(damaged), timeout=60)
        assert process.returncode in (0, 2), (process.returncode, bytes(damaged))

# It ends with its input and with its terminal, and leaves nothing behind.
before = sorted(pathlib.Path("run").rglob("*"))
for how in ["input", "hangup", "output"]:
    process = subprocess.Popen([program, "serve", "run"], stdin=-1, stdout=-1, stderr=subprocess.DEVNULL)
    process.stdin.write(good)
    process.stdin.flush()
    process.stdout.read(8)
    if how == "input":
        process.stdin.close()
    elif how == "hangup":
        process.send_signal(signal.SIGHUP)
    else:
        process.stdout.close()
        try:
            for _ in range(2000):
                process.stdin.write(good)
            process.stdin.flush()
        except BrokenPipeError:
            pass
    limit = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    assert process.poll() is not None, how
assert sorted(pathlib.Path("run").rglob("*")) == before
print("serve_test: ok")
