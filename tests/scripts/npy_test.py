"""What `thimble inspect --npy DIR` writes, as NumPy reads it. Usage: npy_test.py THIMBLE_BINARY SOURCE_DIR"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy

thimble = pathlib.Path(sys.argv[1]).resolve()
CONFIG = """task: {name: copy, symbols: 6, length: 7, min_length: 3}
data: {train: 100, validation: 10, test: 25}
model: {d_model: 12, heads: 3, layers: 2, d_ff: 16, norm: pre, positions: learned, attention: {mask: causal}}
train: {steps: 5, batch: 10, threads: 1}
"""


def run(*arguments):
    return subprocess.run([thimble, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


with tempfile.TemporaryDirectory() as directory:
    work = pathlib.Path(directory)
    (work / "config.yaml").write_text(CONFIG)
    run("train", work / "config.yaml", "--out", work / "run", "--quiet")
    run("inspect", work / "run", "--npy", work / "arrays", "--quiet")
    attention, tokens, lengths = (numpy.load(work / "arrays" / f"{name}.npy")
                                  for name in ("attention", "tokens", "lengths"))
    assert attention.shape == (25, 2, 3, 7, 7) and attention.dtype == numpy.float32, attention.shape
    assert tokens.shape == (25, 7) and tokens.dtype == numpy.int32 and lengths.shape == (25,)
    listed = json.loads(run("tasks", "--config", work / "config.yaml", "--split", "test", "--examples", 25, "--json", "-"))
    for n, example in enumerate(listed["examples"]):
        length = lengths[n]
        assert list(tokens[n, :length]) == example["input"] and (tokens[n, length:] == -1).all()
        own = attention[n, :, :, :length, :length]
        assert abs(own.sum(-1) - 1).max() < 1e-6 and not numpy.triu(own, 1).any()
        assert numpy.isfinite(attention[n]).sum() == own.size  # padding is NaN
    # A sequence that is padded gives the weights that it has alone.
    n = int(lengths.argmin())
    text = " ".join(listed["tokens"][token] for token in tokens[n, :lengths[n]])
    alone = json.loads(run("trace", work / "run", text, "--json", "-"))["attention"]
    assert abs(attention[n, :, :, :lengths[n], :lengths[n]] - numpy.array(alone)).max() < 1e-6
print("npy_test: ok")
