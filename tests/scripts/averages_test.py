"""The mean maps of a report on sequences of different lengths, against NumPy: each cell and the number of sequences that it
is a mean over. statistics_test.py has the rest. Usage: averages_test.py THIMBLE_BINARY SOURCE_DIR"""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import numpy

program, source = (pathlib.Path(x).resolve() for x in sys.argv[1:3])
sys.path.insert(0, str(source / "python"))
os.environ["THIMBLE"] = str(program)
import thimble  # noqa: E402

ENCODER = """task: {name: file, file: lines.tsv}
model: {d_model: 12, heads: 3, layers: 2, d_ff: 16, norm: pre, attention: {mask: MASK}}
train: {steps: 20, batch: 10, threads: 1}
"""
PAIR = """task: {name: file, file: pairs.tsv}
model: {kind: encoder_decoder, d_model: 12, heads: 2, layers: 1, d_ff: 16, output: {per: next}}
train: {steps: 20, batch: 10, threads: 1}
"""


def run(*arguments):
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True, cwd=work).stdout


def arrays(name, sites):
    """Those of the test sequences that `inspect` reads, and the sequences."""
    model = thimble.Run(work / name).model()
    data = model.data("test", 1000)
    found = model.run_with_cache(data, sites)[1]
    model.close()
    return found, data


def letters(length):
    return [drawn.choice("abcdefg") for _ in range(length)]


def write(name, answer):
    """600 lines of 2 to 7 letters, and one of 30."""
    lines = [letters(drawn.randint(2, 7)) for _ in range(600)]
    lines.insert(300, letters(30))
    (work / name).write_text("".join(f"{' '.join(line)}\t{' '.join(answer(line))}\n" for line in lines))


def close(found, expected, what, tolerance=1e-6):
    found = numpy.array([numpy.nan if x is None else x for x in numpy.ravel(numpy.array(found, dtype=object))], dtype=float)
    expected = numpy.ravel(numpy.array(expected, dtype=float))
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    assert (numpy.isnan(found) == numpy.isnan(expected)).all(), f"{what}: null in other places than expected"
    difference = numpy.nanmax(abs(found - expected), initial=0)
    assert difference <= tolerance, f"{what} differs by {difference}"


def mean_and_counts(maps, sizes, shape, from_end=False):
    """The mean of maps (rows, columns) of their sizes in each cell, and how many have it."""
    total, count = numpy.zeros(shape), numpy.zeros(shape, dtype=int)
    for one, (rows, columns) in zip(maps, sizes):
        corner = (slice(shape[0] - rows, None), slice(shape[1] - columns, None)) if from_end else (slice(rows), slice(columns))
        total[corner] += one[:rows, :columns]
        count[corner] += 1
    return numpy.where(count > 0, total / numpy.maximum(count, 1), numpy.nan), count


def check_maps(report, attention, layer, sizes, first_head):
    """Mean weights of a layer, attention (N, H, T, S)."""
    shape = attention.shape[2:]
    for head in range(attention.shape[1]):
        entry, maps = report["heads"][first_head + head], attention[:, head].astype(float)
        mean, count = mean_and_counts(maps, sizes, shape)
        close(entry["mean_weights"], mean, f"mean_weights of layer {layer} head {head}")
        assert report["mean_counts"][layer] == count.tolist(), f"mean_counts of layer {layer}"
        # Plain NumPy gives the same mean, since padding is NaN in the arrays.
        assert (numpy.isfinite(maps).sum(0) == count).all()
        mean, count = mean_and_counts(maps, sizes, shape, True)
        close(entry["mean_weights_from_end"], mean, "mean_weights_from_end")
        assert (count == numpy.array(report["mean_counts"][layer])[::-1, ::-1]).all()


def check_rollout(report, attention, lengths):
    maps = numpy.full((len(lengths), *attention.shape[3:]), numpy.nan)
    for n, length in enumerate(lengths):
        product = numpy.eye(length)
        for layer in attention[n].astype(float):
            product = (layer[:, :length, :length].mean(0) / 2 + numpy.eye(length) / 2) @ product
        maps[n, :length, :length] = product
    sizes = [(length, length) for length in lengths]
    close(report["rollout"], mean_and_counts(maps, sizes, maps.shape[1:])[0], "rollout")
    close(report["rollout_from_end"], mean_and_counts(maps, sizes, maps.shape[1:], True)[0], "rollout_from_end")


def check_encoder(mask):
    (work / "config.yaml").write_text(ENCODER.replace("MASK", mask))
    shutil.rmtree(work / "run", ignore_errors=True)
    run("train", "config.yaml", "--out", "run", "--quiet")
    text = run("inspect", "run", "--json", "report.json", "--examples", 1000, "--heads", "0.0")
    report = json.loads((work / "report.json").read_text())
    maps, data = arrays("run", "*hook_pattern")
    attention, lengths = numpy.stack(list(maps.values()), 1), data.lengths.tolist()
    assert attention.shape[3] == 30 and min(lengths) < 8
    sizes = [(length, length) for length in lengths]
    for layer in range(2):
        check_maps(report, attention[:, layer], layer, sizes, 3 * layer)
    check_rollout(report, attention, lengths)
    count = numpy.array(report["mean_counts"][0])
    sequences = f"mean of {count[count > 0].min()} to {count.max()} sequences"
    assert sequences.replace("mean of", "mean over") in " ".join(text.split())
    # The map is as large as the longest of these sequences, and not empty.
    drawn_map = text[text.index("mean over"):].split("head 0.0")[1]
    rows = [line for line in drawn_map.splitlines() if line.strip()[:1].isdigit()]
    assert len(rows) >= max(lengths) and "?" not in drawn_map and any(c in drawn_map for c in ".:-=+*#%@"), drawn_map


def check_pair():
    (work / "config.yaml").write_text(PAIR)
    run("train", "config.yaml", "--out", "pair", "--quiet")
    run("inspect", "pair", "--json", "report.json", "--quiet")
    report = json.loads((work / "report.json").read_text())
    maps, data = arrays("pair", "*hook_pattern")
    targets, sources = data.lengths.tolist(), data.source_lengths.tolist()
    for layer, (name, queries, keys) in enumerate(
            (("encoder.blocks.0.attn", sources, sources), ("decoder.blocks.0.attn", targets, targets),
             ("decoder.blocks.0.cross", targets, sources))):
        attention = maps[name + ".hook_pattern"]
        check_maps(report, attention, layer, list(zip(queries, keys)), 2 * layer)
    assert report["rollout"] is None


def check_single():
    """One test sequence has no spread: what needs one is null, in words 'not enough evidence'."""
    (work / "one.yaml").write_text("task: {name: modular_addition, symbols: 5}\ndata: {train: 24, validation: 1, test: 1}\n"
                                   "model: {d_model: 8, heads: 1, layers: 1, d_ff: 8, output: {per: sequence}}\n"
                                   "train: {steps: 5, batch: 8, threads: 1}\n")
    run("train", "one.yaml", "--out", "one", "--quiet")
    text = " ".join(run("inspect", "one", "--json", "report.json").split())
    report = json.loads((work / "report.json").read_text())
    scale = report["scale"]
    assert scale["at_chance"] is None and scale["smallest_effect"] == {"accuracy": None, "loss": None}, scale
    assert report["joint_ablation"]["removable"] == {"by_importance": None, "greedily": None, "alone": None}
    zero = report["heads"][0]["ablation"]["zero"]
    assert zero["interval"] == [None, None] and zero["capped_loss"] == {"change": 0, "interval": [0, 0], "p": 1}, zero
    assert [round(x, 9) for x in zero["accuracy_interval"]] == [-0.975, 0.975] and zero["accuracy_p"] == 1, zero
    assert report["heads"][0]["verdict"] == "not_enough", report["heads"][0]
    assert "a constant answer is always right on 1 test sequence" in text and "0 points" not in text, text
    assert "no better than chance" not in text and "nan" not in text, text
    ablated = run("ablate", "one", "0.0")
    assert "unknown" in ablated and "nan" not in ablated and "resample        -  unknown" in ablated, ablated
    assert "resample: of the 0 sequences that share their length with another" in ablated


with tempfile.TemporaryDirectory() as directory:
    work = pathlib.Path(directory)
    drawn = random.Random(1)
    write("lines.tsv", lambda line: line[::-1])
    write("pairs.tsv", lambda line: letters(drawn.randint(1, 5)))
    check_encoder("none")
    check_encoder("causal")
    check_pair()
    check_single()
print("averages_test: ok")
