"""How the Python package behaves: progress, messages, what it takes and shows. The rest is pytest's.
Usage: python_manners_test.py THIMBLE_BINARY SOURCE_DIR"""

import io
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import warnings

import pytest

from package_under_test import folder, numpy, run, run_tests, SMALL, source, thimble, thimble_program
from thimble import _arguments, _plots, _program  # noqa: E402

pytestmark = pytest.mark.usefixtures("folder")


LINES = ["analyzing heads: 5 %, 9 s left", "analyzing heads: 50 %, 5 s left", "thimble: a remark"]
STEPS = ["reverse: 7 parameters", "step 1/30  loss 2.3", "step 10/30  loss 2.25", "step     10  validation  loss 2.2",
         "step 30/30  loss 2.1"]


@pytest.fixture
def speaking(tmp_path, monkeypatch):
    """A program that says some lines, and has an empty result."""
    def say(lines, status=0, then=""):
        program = tmp_path / "thimble"
        body = "".join(f"echo '{line}' >&2\n" for line in lines) + then + ("echo '{}'" if status == 0 else f"exit {status}")
        program.write_text(f"#!/bin/sh\n[ $1 != --version ] || exec {thimble_program} $1\n{body}\n")
        program.chmod(0o755)
        monkeypatch.setenv("THIMBLE", str(program))
    return say


def in_terminal(progress):
    """What a terminal gets of a call."""
    code = f"from thimble._program import call\ncall(['inspect'], progress={progress})"
    leader, follower = pty.openpty()
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], stderr=follower, check=True)
    os.close(follower)
    out = b""
    while True:
        try:
            more = os.read(leader, 4096)
        except OSError:
            break
        if not more:
            break
        out += more
    os.close(leader)
    return out.decode().replace("\r\n", "\n")


def test_progress_in_a_pipe_is_whole_lines(speaking, capfd, monkeypatch):
    speaking(STEPS)
    with pytest.warns(UserWarning):  # of another call the rest are remarks
        thimble.tasks()
    assert capfd.readouterr().err == "step 30/30  loss 2.1\n"
    _program.call(["train"], progress=True)
    assert capfd.readouterr().err == f"{STEPS[0]}\n{STEPS[3]}\n{STEPS[4]}\n"
    monkeypatch.setattr(_program, "_SECONDS", 0)
    _program.call(["train"], progress=True)
    assert capfd.readouterr().err == "".join(line + "\n" for line in STEPS)


def test_progress_in_a_terminal_moves(speaking):
    speaking(STEPS)
    assert in_terminal(True) == f"{STEPS[0]}\n\r{STEPS[1]}\r{STEPS[2]}\r{STEPS[3]}\n\r{STEPS[4]}\n"
    speaking([STEPS[2], "thimble: x"])
    assert in_terminal(True) == f"\r{STEPS[2]}\rthimble: x{' ' * (len(STEPS[2]) - 10)}\n"
    speaking(LINES[:2])
    assert in_terminal(False) == f"\r{LINES[0]}\r{LINES[1]}\r{' ' * len(LINES[1])}\r"  # nothing remains


def test_progress_is_no_warning(speaking, monkeypatch, capfd):
    speaking(LINES)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        thimble.tasks()
    assert [str(one.message) for one in told] == ["a remark"] and capfd.readouterr().err == ""
    speaking([*LINES[:2], "thimble: no good"], status=2)
    with pytest.raises(thimble.InputError, match="^no good$"):
        thimble.tasks()


def test_progress_after_a_remark_appears_at_once(speaking, tmp_path, monkeypatch):
    seen = tmp_path / "seen"
    speaking([LINES[2], LINES[0]], then=f"for i in $(seq 100); do [ -e {seen} ] || sleep 0.05; done; [ -e {seen} ] || exit 5\n")
    monkeypatch.setattr(_program._Progress, "show", lambda _, line: seen.touch() if line == LINES[0] else None)
    with pytest.warns(UserWarning, match="^a remark$"):
        thimble.tasks()


def test_progress_in_a_notebook_moves_on_standard_output(speaking, monkeypatch):
    class OutStream(io.StringIO):
        pass

    OutStream.__module__ = "ipykernel.iostream"
    stream = OutStream()
    monkeypatch.setattr(sys, "stdout", stream)
    speaking(LINES[:1])
    thimble.tasks()
    assert stream.getvalue() == f"\r{LINES[0]}\r{' ' * len(LINES[0])}\r"
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # as captured
    thimble.tasks()
    assert sys.stdout.getvalue() == ""


def test_without_streams(speaking, monkeypatch):
    speaking(STEPS)
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert _program.call(["train"], progress=True) == {}


def test_overrides_may_be_nested():
    nested = {"model": {"heads": 2, "attention": {"mask": "causal"}}, "train.optimizer": {"lr": 0.1}, "data.test": 5, "task": {}}
    assert _arguments.words(nested) == ["model.heads=2", "model.attention.mask=causal", "train.optimizer.lr=0.1", "data.test=5"]
    run = thimble.train("reverse", {**SMALL, "train.steps": 1, "model": {"heads": 2, "attention": {"mask": "causal"}}}, out="n")
    with run.model() as model:
        assert (model.config["model"]["heads"], model.config["model"]["attention"]["mask"]) == (2, "causal")
    with pytest.raises(thimble.InputError, match="model.attention.masc=causal: unknown key, did you mean model.attention.mask"):
        thimble.train("reverse", {"model": {"attention": {"masc": "causal"}}})


def test_sweeps_of_a_dictionary(tmp_path):
    content = {"config": "reverse", "grid": {"model.heads": [1, 2]}, "seeds": [3]}
    short = {**SMALL, "train.steps": 2}
    sweep = thimble.sweep(content, short, jobs=2)
    assert [run.result["steps"] for run in sweep.runs] == [2, 2]
    assert json.loads(pathlib.Path(sweep.result["sweep"]).read_text())["seeds"] == [3]
    assert pathlib.Path(sweep.result["sweep"]).parent == pathlib.Path("runs")
    directory = sweep.runs[0].directory
    assert thimble.sweep(content, short, jobs=2).runs[0].directory == directory  # the same content is the same sweep
    shutil.copy(source / "configs" / "reverse.yaml", "mine.yaml")
    letters = "abcdef"
    task = thimble.Task([(f"{x} {y} {z}", f"{z} {y} {x}") for x in letters for y in letters for z in letters])
    for config, place in (("mine.yaml", tmp_path / "a" / "swept"), (task, tmp_path / "b" / "swept")):
        overrides = {key: x for key, x in short.items() if config is not task or key.startswith("train.")}
        swept = thimble.sweep({**content, "config": config}, overrides, out=place)
        assert len(swept.runs) == 2 and sorted(path.name for path in place.parent.iterdir())[0].startswith("settings-")
    swept = thimble.sweep({**content, "grid": {"model": {"heads": numpy.array([1, 2])}}, "seeds": range(3, 4)}, short, jobs=2)
    assert [run.result["weights_hash"] for run in swept.runs] == [run.result["weights_hash"] for run in sweep.runs]
    for wrong, message in (({**content, "config": "nope"}, "nope: no such config"), ({**content, "gird": 1}, "gird: unknown key"),
                           ({"grid": {}}, "^sweep: needs a config: a file, the name of a bundled one, or a Task$")):
        with pytest.raises(ValueError, match=message):
            thimble.sweep(wrong)
    assert content == {"config": "reverse", "grid": {"model.heads": [1, 2]}, "seeds": [3]}  # is left as it was


def test_messages_name_keywords(run, capfd):
    for call, message in (
            (lambda: run.patch(pairs=-1), "^pairs=-1: must be an integer from 2"),
            (lambda: run.patch(clean=0, corrupted=1, edges=True), "^edges=True measures .*; leave out clean=, corrupted= and --heads$"),
            (lambda: run.patch(clean="3 1 4"), "^clean= requires corrupted=$"),
            (lambda: run.evaluate(splits="tests"), "^splits=tests: must be one of"),
            (lambda: thimble.sweep("nope.yaml", jobs=-1), "^jobs=-1: must be an integer"),
            (lambda: thimble.train("reverse", SMALL, out=run.directory), 
             "choose another with out=, or resume this run with resume=True$")):
        with pytest.raises(thimble.InputError, match=message) as error:
            call()
        assert error.value.problems == str(error.value).split("\n")
    with pytest.raises(TypeError, match="^clean and corrupted: must be two texts, or the numbers of two test sequences$"):
        run.patch(clean="3 1 4", corrupted=1)
    assert run.ablate((0, 1), 20) == run.ablate([(0, 1)], 20) and run.ablate(("0.1", "1.0"), 20)["heads"] == ["0.1", "1.0"]
    capfd.readouterr()
    thimble.train("reverse", SMALL, out="part", stop_after=3)
    assert f'resume with:\n  thimble.Run("part").resume()\n' in capfd.readouterr().err
    command = ["thimble", "train", "x", "--stop-after", "3", "--out", "a--b"]
    said = "--stop-after 3: is less; --stop-after-all and a--out stay; --out=5, use --resume (or `--out`)"
    assert _arguments.in_python(said, command) == \
        "stop_after=3: is less; --stop-after-all and a--out stay; out=5, use resume=True (or `out=`)"
    again = thimble.InputError("--out 3: x", 2, command)
    assert str(again) == "--out 3: x".replace("--out ", "out= ") and _arguments.in_python(str(again), command) == str(again)


def test_no_name_is_an_option(run):
    for call in (lambda: thimble.train("--help"), lambda: thimble.train("--version"), lambda: thimble.sweep("--help"),
                 lambda: thimble.tasks("--help"), lambda: thimble.gradcheck("--help"), lambda: thimble.compare([run, "-h"]),
                 lambda: thimble.open("--help", run.path)(["1"])):
        with pytest.raises(thimble.InputError):
            call()
    with pytest.raises(thimble.InputError, match="--help: no such config"):
        thimble.train("--help")


def test_heads_by_name(run):
    heads = run.heads
    assert isinstance(heads, thimble.Heads) and isinstance(heads, list) and len(heads) == 4
    assert heads["1.0"] is heads[2] and heads[-1].name == "1.1"
    assert isinstance(heads[1:3], thimble.Heads) and [head.name for head in heads[1:3]] == ["0.1", "1.0"]
    with pytest.raises(KeyError, match="2.0: is no head; there are 0.0, 0.1, 1.0, 1.1"):
        heads["2.0"]
    with pytest.raises(IndexError):
        heads[4]


def test_scores_have_all_that_decides_a_label(run):
    heads = run.heads
    assert len(run._known) == 1
    for head, theirs in zip(heads, run.inspect()["heads"]):
        for name, fields in theirs["scores"].items():
            score = head.scores[name]
            known = {key: x for key, x in fields.items() if key != "varied"}
            assert {key: getattr(score, key) for key in known} == known, name
            assert {key: getattr(score.varied, key) for key in fields["varied"]} == fields["varied"]
            assert score.matched == fields.get("matched", fields["chance"]) and score.varied.varied is None
    assert len(run._known) == 1  # measured once


def test_frames(run):
    pandas = pytest.importorskip("pandas")
    frame = run.heads.frame()
    assert frame["name"].tolist() == ["0.0", "0.1", "1.0", "1.1"] and frame["verdict"][0] == run.heads[0].verdict
    assert frame["mirror"][3] == run.heads[3].scores["mirror"].value
    assert frame["zero_loss_change"][1] == run.heads[1].ablation["zero"]["loss_change"]
    assert {"label", "mean_accuracy_change", "resample_loss_change"} < set(frame.columns)
    assert len(pandas.DataFrame(run.metrics)) == len(run.metrics["loss"]) > 40


def test_edges(run):
    found = run.patch(pairs=5, edges=True)
    assert {edge["to"] for edge in found["edges"]} > {"logits", "1.0 key"} and 0 < found["circuit"]["kept"] <= 1.1


def test_what_is_not_installed_says_so(run):
    code = "import sys\nfor name in ('numpy', 'pandas', 'matplotlib', 'matplotlib.pyplot', 'torch'): sys.modules[name] = None\n" \
        f"import thimble\nrun = thimble.Run({str(run.directory)!r})\n" \
        "def said(call):\n    try: call()\n    except ImportError as error: print(error)\n    else: print('fine')\n" \
        "for call in (lambda: run.attention('1 2'), lambda: run.model(), lambda: run.heads.frame(), lambda: run.plot(),\n" \
        "             lambda: run.heads[0].plot(), lambda: thimble.probe([], []), lambda: run._repr_html_()[0],\n" \
        "             lambda: run.weights, lambda: run.torch()): said(call)\n" \
        "print(type(run.metrics).__name__)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    arrays = "arrays need numpy; install it: pip install numpy"
    plots = "plots need matplotlib; install it: pip install matplotlib"
    assert out.split("\n") == [arrays, arrays, "frames need pandas; install it: pip install pandas", plots, plots, arrays, "fine",
                               arrays, "modules need numpy; install it: pip install numpy", "dict", ""]


def test_plots(run):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = run.heads["1.0"].plot("3 1 4")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["3", "1", "4"] and ax.get_title() == "head 1.0"
    assert numpy.allclose(ax.images[0].get_array(), run.attention("3 1 4").weights[1, 0])
    first = run.inspect()["examples"][0]
    ax = run.heads[1].plot()
    assert [tick.get_text() for tick in ax.get_yticklabels()] == first["tokens"]
    assert numpy.allclose(ax.images[0].get_array(), first["attention"][0][1])
    assert run.heads[1].plot("1 2", ax=ax) is ax
    hostile = _plots.attention_map("x", [[1, 0], [0, 1]], ["$\\bad$", "a$b$"], ["$", "<b>"], None)
    hostile.figure.canvas.draw()  # no formula
    axes = run.plot()
    assert [ax.get_ylabel() for ax in axes] == ["loss", "accuracy"]
    line = next(line for line in axes[0].lines if line.get_label() == "train")
    losses = [x for x, split in zip(run.metrics["loss"], run.metrics["split"]) if split == "train"]
    assert line.get_ydata().tolist() == losses
    logged = thimble.train("reverse", {**SMALL, "train.log_heads": True}, out="logged")
    assert {line.get_label() for line in logged.plot()[0].lines} == {"train", "validation", "test"}
    words = thimble.train("translation", {**SMALL, "train.steps": 2, "data.train": 100}, out="words")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        axes = [words.heads[name].plot("le roi") for name in ("encoder.0.0", "decoder.0.0", "cross.0.1")]
    answer, source = words.attention("le roi").tokens, ["le", "roi"]
    ticks = [[[tick.get_text() for tick in ax.get_yticklabels()], [tick.get_text() for tick in ax.get_xticklabels()]]
             for ax in axes]
    assert ticks == [[source, source], [answer, answer], [answer, source]]
    assert [ax.images[0].get_array().shape for ax in axes] == [tuple(map(len, pair)) for pair in ticks]


def test_a_notebook_shows_the_heads(run):
    page = run._repr_html_()
    assert repr(run) in page and "<iframe" not in page and len(page) < 100_000
    for head in run.heads:
        assert f"<td>{head.name}</td>" in page
    most = max(run.heads, key=lambda head: abs(head.ablation["zero"]["loss_change"]))
    assert f"head {most.name}: attention" in page and page.count("<rect") == 16 * 16
    weight = run.inspect()["examples"][0]["attention"][most.layer][most.head][2][5]
    assert f'fill-opacity="{weight:.3f}"' in page
    shutil.copytree(run.directory, "gone")
    shutil.rmtree("gone/checkpoints")
    assert thimble.Run("gone")._repr_html_() is None
    file = run.report("report.html")
    assert file.stat().st_size > 50_000 and "src=\"http" not in file.read_text()


def test_hostile_tokens_stay_text():
    bad = "<script>alert(1)</script>&\"'"
    page = _plots.page(bad, [(bad, bad, bad)], bad, [[0.5]], [bad], [bad])
    assert "<script" not in page and page.count("&lt;script&gt;") == 9 and "&amp;&quot;" in page
    long = _plots.page("", [], "0.0", [[0.1] * 100] * 100, ["a"] * 100, ["b"] * 100)
    assert long.count("<rect") == 48 * 48
    assert not re.search(r"<(?!/?(p|table|tr|th|td|svg|text|rect|title)\b)", page)


if __name__ == "__main__":
    run_tests(__file__)
