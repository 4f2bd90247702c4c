"""The Python package against the built program. The rest is pytest's.
Usage: python_package_test.py THIMBLE_BINARY SOURCE_DIR [all]   (default: not those that take seconds)"""

import concurrent.futures
import json
import os
import pathlib
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import types

import pytest

from package_under_test import folder, numpy, run, run_tests, SMALL, source, thimble, thimble_program
from thimble import _arguments  # noqa: E402

pytestmark = pytest.mark.usefixtures("folder")
TOKENS = "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6"


@pytest.fixture(scope="module")
def translation(folder):
    return thimble.train("translation", {"train.steps": 5, "train.schedule.warmup": 0, "data.train": 200}, out="runs/words")


def said(*arguments):
    """What the program itself prints as JSON."""
    return json.loads(subprocess.run([thimble_program, *arguments, "--json", "-"], capture_output=True, check=True).stdout)


def test_version_is_that_of_the_program():
    line = subprocess.run([thimble_program, "--version"], capture_output=True, text=True, check=True).stdout
    assert line.split()[-1] == thimble.__version__
    assert thimble.program() == thimble_program


def test_another_version_is_refused(tmp_path, monkeypatch):
    other = tmp_path / "thimble"
    other.write_text("#!/bin/sh\necho thimble 0.1.0\n")
    other.chmod(0o755)
    monkeypatch.setenv("THIMBLE", str(other))
    with pytest.raises(RuntimeError, match="has version 0.1.0, this package 0.3.0"):
        thimble.tasks()
    monkeypatch.setenv("THIMBLE", thimble_program)  # the remedy
    assert "reverse" in thimble.tasks()


def test_a_program_that_is_not_there(monkeypatch):
    monkeypatch.setenv("THIMBLE", "/typo/thimble")
    with pytest.raises(RuntimeError, match="no program /typo/thimble, which the variable THIMBLE names"):
        thimble.tasks()


def test_no_program(tmp_path):
    code = "import thimble, sysconfig\ntry: thimble.tasks()\nexcept RuntimeError as error: print(error)"
    package = tmp_path / "python" / "thimble"
    package.parent.mkdir()
    package.symlink_to(source / "python" / "thimble")
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-rL", str(package.parent), str(copy)], check=True)
    environment = {"PATH": "/nowhere", "PYTHONPATH": str(copy)}
    out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
    assert out.startswith("there is no program thimble on the path; add its folder to PATH")
    environment["PATH"] = os.path.dirname(thimble_program)  # the remedy
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout == b""


def test_train_shows_progress_and_returns_the_run(capfd):
    run = thimble.train("reverse", SMALL)
    shown = capfd.readouterr().err
    assert "\nstep 40/40 " in shown and "no better than chance" in shown and "\r" not in shown
    assert max(len(line) for line in shown.split("\n")) <= 80
    assert run.directory.parent == pathlib.Path("runs").absolute() and run.result["steps"] == 40
    assert re.fullmatch(rf"Run runs/{run.directory.name}: 40 steps, 10314 parameters, test loss 2\.\d{{4}}, tokens \d+\.\d\d % of 800",
                        repr(run))


def test_result_is_that_of_the_program(run):
    again = subprocess.run([thimble_program, "train", str(run.directory / "config.yaml"), "--out", "again", "--json", "-",
                            "--quiet"], capture_output=True, check=True)
    assert json.loads(again.stdout)["weights_hash"] == run.result["weights_hash"]
    assert run.evaluate(splits=["test"]) == said("eval", "runs/r2", "--split", "test")


def test_metrics_are_columns(run):
    columns = run.metrics
    lines = [json.loads(line) for line in (run.directory / "metrics.jsonl").read_text().splitlines()]
    assert columns["loss"] == [line["loss"] for line in lines]
    assert columns["split"].count("train") == 40 and len({len(column) for column in columns.values()}) == 1


def test_heads(run):
    heads = run.heads
    assert [(head.layer, head.head) for head in heads] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert heads[2].name == "1.0" and run.ablate([heads[2].name]) == run.ablate([(1, 0)])
    theirs = said("inspect", "runs/r2", "--examples", "0")["heads"][3]
    assert heads[3].scores["mirror"].value == theirs["scores"]["mirror"]["value"]
    assert heads[3].scores["special"].value is None  # was not measured
    assert heads[3].ablation["zero"] == theirs["ablation"]["zero"] and heads[3].label == theirs["label"]


def test_attention_is_that_of_the_page(run):
    attention = run.attention(TOKENS)
    assert attention.weights.shape == (2, 2, 16, 16) and attention.tokens == TOKENS.split()
    assert numpy.allclose(attention.weights.sum(-1), 1, atol=1e-6)
    subprocess.run([thimble_program, "trace", "runs/r2", TOKENS, "--html", "page.html", "--sequences", "20"],
                   capture_output=True, check=True)
    example = run.inspect()["examples"][0]
    assert numpy.allclose(run.attention(" ".join(example["tokens"])).weights, example["attention"], atol=1e-6)


def test_attention_of_an_encoder_decoder(translation):
    attention = translation.attention("mes belles reines")
    assert attention.source == ["mes", "belles", "reines"]
    assert attention.weights["cross.0"].shape[1:] == (len(attention.tokens), 3)


def test_ablate_patch_generate(run, translation):
    assert run.ablate([(0, 1), "1.0"]) == said("ablate", "runs/r2", "0.1,1.0")
    assert run.patch(pairs=10)["pairs"] == 10
    assert run.patch(clean=0, corrupted=3) == said("patch", "runs/r2", "--clean", "0", "--corrupted", "3")
    texts = " ".join(run.example.tokens), " ".join(run.example.tokens[::-1])
    assert run.patch(*texts) == said("patch", "runs/r2", "--clean-text", texts[0], "--corrupted-text", texts[1])
    assert run.patch(pairs=10, corruption="resample") == run.patch(pairs=10)
    with pytest.raises(thimble.InputError, match='^corruption=x: must be resample, order, target, or "token K"'):
        run.patch(corruption="x")
    answers = translation.generate("mes belles reines", beams=3)
    assert len(answers) == 3 and [p for _, p in answers] == sorted((p for _, p in answers), reverse=True)
    drawn = translation.generate("mes belles reines", samples=4, temperature=2, seed=3)
    assert len(drawn) == 4 and drawn[:2] == translation.generate("mes belles reines", samples=2, temperature=2, seed=3)
    with pytest.raises(thimble.InputError, match="top_p=2.0: must be a number above 0, at most 1"):
        translation.generate("mes belles reines", samples=1, top_p=2.0)
    with pytest.raises(TypeError, match="width"):
        translation.generate("mes belles reines", width=3)


def test_weights_and_checkpoints(run):
    weights = run.weights
    assert weights["token_embedding.weight"].shape == (10, 32) and not any("optimizer" in name for name in weights)
    assert run.path.name == "final.safetensors"
    assert thimble.Run(run.directory, checkpoint="best").path.name == "best.safetensors"
    with pytest.raises(FileNotFoundError, match="r2: has no checkpoint 7; it has best, final$"):
        thimble.Run(run.directory, checkpoint=7)


def test_damaged_weights(run, tmp_path):
    whole, damaged = run.path.read_bytes(), tmp_path / "run/checkpoints/final.safetensors"
    shutil.copytree(run.directory, tmp_path / "run")
    header, draw, refused = int.from_bytes(whole[:8], "little"), random.Random(1), 0
    for _ in range(500):
        at = draw.randrange(8 + header)
        content = whole[:draw.randrange(8 + header)] if draw.random() < 0.1 else \
            whole[:at] + bytes([draw.randrange(256)]) + whole[at + 1:]
        damaged.write_bytes(content)
        try:
            assert thimble.Run(tmp_path / "run").weights
        except ValueError as error:
            assert str(error).startswith(f"{damaged}: is not a safetensors file, or is damaged ("), error
            refused += 1
    assert 100 < refused < 500


@pytest.mark.slow
def test_torch(run):
    torch = pytest.importorskip("torch")
    pytest.importorskip("yaml")
    tokens = torch.tensor([[int(token) for token in TOKENS.split()]])
    logits = numpy.array(run.trace(TOKENS)["logits"])
    assert numpy.allclose(run.torch()(tokens)[0].detach().numpy(), logits, atol=1e-5)


def test_own_pairs(capfd):
    words = ["un", "deux", "trois", "quatre", "cinq"]
    pairs = [([a, b, c], " ".join((c, b, a))) for a in words for b in words for c in words]
    task = thimble.Task(pairs)
    run = thimble.train(task, {"train.steps": 10, "train.batch": 32, "train.schedule.warmup": 0}, out="runs/own")
    assert run.result["steps"] == 10 and "of 125" in repr(task) or "125 pairs" in repr(task)
    assert sorted(run.inspect()["tokens"][:5]) == sorted(words)
    assert thimble.Task(pairs).config() == task.config()  # the same pairs are the same file
    with pytest.raises(FileExistsError, match="has other content, and stays"):
        thimble.Task(pairs[1:], file=task.file).config()
    with pytest.raises(ValueError, match="pair 1: token 'a b'"):
        thimble.Task([("a", "b"), (["a b"], "c")])


def test_errors_have_the_message_and_the_problems():
    with pytest.raises(thimble.InputError) as error:
        thimble.train("reverse", {"model.headz": 2, "train.steps": -1})
    assert error.value.status == 2 and len(error.value.problems) == 2
    assert error.value.problems[0] == "command line: model.headz=2: unknown key, did you mean model.heads?"
    with pytest.raises(ValueError, match="nope: no such config"):
        thimble.train("nope")
    diverges = {"train.optimizer.name": "sgd", "train.optimizer.lr": 100, "train.optimizer.momentum": 0.99,
                "train.clip_norm": 0, "model.norm": "pre", "model.layers": 4, "model.positions": "none"}
    # Which one is met first depends on rounding.
    first = "(op [a-z_]+|parameter [a-z0-9_.]+), layer .*"
    with pytest.raises(thimble.NonFiniteError, match=f"step [0-9]+: the loss is .* is in {first}; lower the learning rate"):
        thimble.train("reverse", {"train.steps": 20, "train.schedule.warmup": 5, "data.train": 5000, **diverges})
    with pytest.raises(FileNotFoundError, match="is no run"):
        thimble.Run("runs")


def test_errors_go_through_processes():
    error = thimble.NonFiniteError("step 3", 3, ["thimble"])
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is thimble.NonFiniteError and (str(again), again.status) == ("step 3", 3)


def test_what_is_no_value_is_refused(run):
    for call in (lambda: run.patch(clean=3), lambda: thimble.train("reverse", {"train.seed": object()}),
                 lambda: thimble.Task(["ab"])):
        with pytest.raises((TypeError, ValueError), match="clean= requires corrupted=|must be"):
            call()
    assert run.evaluate({"data.test": numpy.int64(10)}, splits="test")["test"]["sequences"] == 10


def test_a_run_stays_where_it_was(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run.result["steps"] == 40 and "40 steps" in repr(run) and len(run.heads) == 4
    shutil.copytree(run.directory, "moved")
    moved = thimble.Run("moved")
    shutil.rmtree("moved")
    assert "is not there any more" in repr(moved) and moved._repr_html_() is None


@pytest.mark.slow
def test_any_exception_ends_the_program():
    """A reader of progress that goes away, or an alarm, neither hangs nor leaves a program that trains."""
    code = TRAIN.format({**LONG, "train.evaluate_every": 100})  # and a line
    process = subprocess.Popen([sys.executable, "-c", code, "runs/broken"], stderr=subprocess.PIPE)
    process.stderr.read(100)
    process.stderr.close()
    process.wait(timeout=60)
    alarm = "import signal, thimble, sys\ndef ring(*_): raise TimeoutError\nsignal.signal(signal.SIGALRM, ring)\n" \
        f"signal.alarm(2)\ntry: thimble.train('reverse', {LONG}, out='runs/alarm')\nexcept TimeoutError: print('rang')"
    out = subprocess.run([sys.executable, "-c", alarm], capture_output=True, text=True, timeout=60)
    assert out.stdout == "rang\n", out
    for name in ("broken", "alarm"):
        steps = int(thimble.Run(f"runs/{name}").path.stem[5:])  # saved, and nobody trains it any more
        assert thimble.Run(f"runs/{name}").resume({"train.steps": steps + 1}).result["steps"] == steps + 1


def test_an_error_is_told_once(capfd):
    with pytest.raises(thimble.InputError):
        thimble.train("reverse", {"model.headz": 2, "train.steps": -1})
    assert capfd.readouterr().err == ""


def test_remarks_are_told(run, tmp_path, monkeypatch, capfd):
    copy = shutil.copytree(run.directory, tmp_path / "copy")
    (copy / "checkpoints/final.safetensors").unlink()
    remark = "^[^\n]*final.safetensors: missing, though training has ended; this is step 40$"
    with pytest.warns(UserWarning, match=remark):
        thimble.Run(copy).inspect()
    with pytest.warns(UserWarning, match=remark), pytest.raises(thimble.InputError, match="^input: there is no token ten"):
        thimble.Run(copy).trace("ten")
    assert capfd.readouterr().err == ""
    program = tmp_path / "thimble"
    program.write_text(f"#!/bin/sh\n[ $1 != --version ] || exec {thimble_program} $1\n"
                       "printf '%s\\n' 'thimble: a remark' 'thimble: another, of two' lines 'thimble: an error' >&2; exit 2\n")
    program.chmod(0o755)
    monkeypatch.setenv("THIMBLE", str(program))
    with pytest.raises(thimble.InputError, match="^an error$"):
        thimble.train("reverse")
    assert capfd.readouterr().err == "thimble: a remark\nthimble: another, of two\nlines\n"


def test_gradcheck_compare_sweep(run):
    checks = thimble.gradcheck("reverse", {"model.d_model": 8, "model.heads": 2, "model.d_ff": 8})
    assert checks["passed"] and {check["verdict"] for check in checks["checks"]} == {"ok"}
    assert thimble.gradcheck(op="softmax")["passed"]
    assert len(thimble.compare([run, "runs/r2"])["runs"]) == 2
    with pytest.raises(ValueError, match="compare reads the newest checkpoint, not best; give the run itself"):
        thimble.compare([thimble.Run(run.directory, "best"), run])
    pathlib.Path("sweep.yaml").write_text(json.dumps({"config": str(source / "configs/reverse.yaml"), "grid": {
        "model.heads": [1, 2], **{key: [value] for key, value in SMALL.items()}}}))
    sweep = thimble.sweep("sweep.yaml", out="swept", jobs=2)
    assert len(sweep.runs) == 2 and repr(sweep) == "Sweep of 2 settings: 2 runs, 0 failed"
    assert sweep.runs[1].heads[1].head == 1


def test_calls_from_threads(run):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run.attention, [TOKENS] * 8))
    assert all((result.weights == results[0].weights).all() for result in results)


LONG = {**SMALL, "train.steps": 500_000, "train.checkpoint_every": 20, "train.evaluate_every": 0, "train.threads": 1}
TRAIN = "import thimble, sys\ntry: thimble.train('reverse', {}, out=sys.argv[1])\nexcept KeyboardInterrupt: print('interrupted')"


def started(directory):
    process = subprocess.Popen([sys.executable, "-c", TRAIN.format(LONG), directory], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    while not list(pathlib.Path(directory, "checkpoints").glob("step-*.safetensors")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("whom", ["the kernel", "its group"])
def test_ctrl_c_saves(whom):
    directory = f"runs/interrupted-{whom.split()[-1]}"
    process = started(directory)
    (os.kill if whom == "the kernel" else os.killpg)(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == "interrupted\n" and f'thimble.Run("{directory}").resume()' in err, (out, err)
    steps = int(thimble.Run(directory).path.stem[5:])
    assert thimble.Run(directory).resume({"train.steps": steps + 1}).result["steps"] == steps + 1


def test_a_killed_kernel_leaves_a_run_that_resumes():
    process = started("runs/killed")
    os.killpg(process.pid, signal.SIGKILL)  # as a server of notebooks does
    process.communicate()
    steps = int(thimble.Run("runs/killed").path.stem[5:])
    assert thimble.Run("runs/killed").resume({"train.steps": steps + 30}).result["steps"] == steps + 30


def stand_ins(monkeypatch):
    """In place of TensorBoard and Weights & Biases; returns (step, value) by name."""
    scalars = {}

    class Log:
        def __init__(self, *_, **__):
            self.step = 0

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def add_scalar(self, name, value, step):
            scalars.setdefault(name, []).append((step, value))

        def log(self, values, step):
            assert step >= self.step  # or it would be left out
            self.step = step
            for name, value in values.items():
                self.add_scalar(name, value, step)

    for name, module in (("torch.utils.tensorboard", {"SummaryWriter": Log}), ("wandb", {"init": Log})):
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(**module))
    for name in ("torch", "torch.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    return scalars


@pytest.mark.slow
def test_the_page_runs(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (source / "docs" / "python.md").read_text()
    names = {}
    scalars = stand_ins(monkeypatch)
    for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S):
        exec(compile(block, "docs/python.md", "exec"), names)
    problems = re.findall(r"^```text\n(command line: .*?)^```", page, re.M | re.S)[0]
    assert capfd.readouterr().out.endswith(problems)
    losses = [(step, x) for step, split, x in zip(*(thimble.Run("runs/r2").metrics[key] for key in ("step", "split", "loss")))
              if split == "train"]
    assert scalars["loss/train"] == losses == scalars["train/loss"] and len(losses) == 400


def test_command_lines_have_one_owner():
    names = re.compile(r'"--[a-z]|\["(train|inspect|eval|generate|sweep|gradcheck|compare|tasks)"')
    for file in (source / "python" / "thimble").glob("*.py"):
        if file.name != "_arguments.py":
            assert not names.search(file.read_text()) or file.name.endswith("_torch.py"), file
    assert _arguments.words({"a": [1, "x"], "b": True, "c": None, "d": "x y"}) == ['a=[1, "x"]', "b=true", "c=", "d=x y"]


if __name__ == "__main__":
    run_tests(__file__, "-o", "markers=slow: takes seconds", *([] if sys.argv[3:] == ["all"] else ["-m", "not slow"]))
