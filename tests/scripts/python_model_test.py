"""The model of a run from Python: what it takes and refuses, and the life of its process. The rest is pytest's.
Usage: python_model_test.py THIMBLE_BINARY SOURCE_DIR"""

import concurrent.futures
import gc
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from package_under_test import folder, numpy, run_tests, thimble, thimble_program

LAST_Z = "blocks.1.attn.hook_z"


@pytest.fixture(scope="module")
def run(folder):
    return thimble.train("reverse", {"train.steps": 40, "train.schedule.warmup": 0, "data.train": 500, "data.validation": 50,
                                     "data.test": 300, "model.heads": 2, "model.layers": 2}, out="run")


@pytest.fixture
def model(run):
    with run.model() as model:
        yield model


def process_of(model):
    assert model.vocabulary
    return model._server._process.process.pid


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_logits_of_every_form_of_input(model):
    logits = model(["3 1 4", "1 5 9"])
    assert logits.shape == (2, 3, 10) and logits.dtype == numpy.float32 and logits.flags.writeable
    ids = [[3, 1, 4], [1, 5, 9]]
    for x in (ids, numpy.array(ids), numpy.array(ids, "i8")[:, ::1], tuple(ids), model.tokens(["3 1 4", "1 5 9"]),
              {"ids": ids}, {"ids": ids, "lengths": [3, 3]}, numpy.array(ids)[::-1][::-1]):
        assert (model(x) == logits).all()
    assert (model("3 1 4") == logits[:1]).all() and (model(numpy.array([3, 1, 4])) == logits[:1]).all()
    ragged = model([[3, 1, 4], [1, 5]])
    assert numpy.isnan(ragged[1, 2]).all() and not numpy.isnan(ragged[1, :2]).any()


def test_data_are_those_of_the_split(model):
    said = subprocess.run([thimble_program, "inspect", "run", "--json", "-", "--examples", "20"], capture_output=True, check=True)
    data = model.data("test", 20)
    examples = json.loads(said.stdout)["examples"]
    assert model.texts(data) == [" ".join(example["tokens"]) for example in examples] and (data.labels == data.ids[:, ::-1]).all()
    tokens, labels = data
    assert tokens is data and labels is data.labels and len(data) == 20
    assert repr(data) == "Tokens of 20 sequences, with labels"
    some = model.data("test", [3, 1, 4])
    assert (some.ids == data.ids[[3, 1, 4]]).all() and (some.labels == data[[3, 1, 4]].labels).all()
    assert (model.data("test", 2, first=3).ids == data[3:5].ids).all() and data[3].ids.shape == (1, 16)
    assert len(model.data("test", 10 ** 6)) == len(model.data()) == 300 and len(model.data("validation")) == 50
    assert (model.data("train", 20).ids != data.ids).any()


def test_losses_of_texts(model):
    losses = model.loss(["1 2 3", "4 5"], ["3 2 1", "5 4"])
    assert losses.shape == (2, 3) and numpy.isnan(losses[1, 2]) and numpy.isnan(losses).sum() == 1
    assert numpy.array_equal(model.loss(["1 2 3", "4 5"], [[3, 2, 1], [5, 4, -1]]), losses, equal_nan=True)
    assert numpy.array_equal(model.loss([[1, 2, 3], [4, 5]], numpy.array([[3, 2, 1], [5, 4, -1]])), losses, equal_nan=True)
    assert numpy.array_equal(model.loss([[1, 2, 3], [4, 5]], [[3, 2, 1], [5, 4]]), losses, equal_nan=True)
    one = model.loss("1 2 3", "3 2 1")
    assert numpy.allclose(one, losses[:1], atol=1e-6)
    for call in (lambda: model.loss(["1 2"]), lambda: model.loss([[1, 2]]), lambda: model.gradients(["1 2"], names="*z")):
        with pytest.raises(ValueError, match="there are no labels; give targets: a text for each input"):
            call()
    with pytest.raises(ValueError, match="targets that are texts need inputs that are texts"):
        model.loss([[1, 2]], ["2 1"])


def test_errors_and_then_answers(run, model):
    z, with_nan = "blocks.0.attn.hook_z", numpy.zeros((1, 2, 2, 16))
    with_nan[0, 1, 1, 3] = numpy.nan
    pid, logits = process_of(model), model(["1 2"])
    for call, message in (
            (lambda: model(["1 2"], replace={"blocks.0.attn.hook_zz": 0}), "no site blocks.0.attn.hook_zz, did you mean"),
            (lambda: model.run_with_cache(["1 2"], "hook_embet"), "no site hook_embet, did you mean hook_embed"),
            (lambda: model.run_with_cache(["1 2"], "*nothing"), r"no site \*nothing"),
            (lambda: model.gradients(["1 2"], ["2 1"], "outputt.0.bias"), "outputt.0.bias, did you mean output.0.bias"),
            (lambda: model(["1 2"], replace={z: numpy.ones((1, 3, 2, 16))}), r"\(1, 3, 2, 16\); it must be \(1, 2, 2, 16\)"),
            (lambda: model(["1 2"], replace={z: (0, {"mask": numpy.ones((3, 1), bool)})}), "it must be"),
            (lambda: model(["1 2"], replace={z: (0, {"head": 2})}), "head 2; there are 0 to 1"),
            (lambda: model(["1 2"], replace={z: (0, {"position": -1})}), "position -1; there are 0 to 1"),
            (lambda: model(["1 2"], replace={"hook_embed": (0, {"head": 0})}), "has no heads"),
            (lambda: model([[1, 2], [3, 10]]), r"token 10 at \(1, 1\); the vocabulary has 0 to 9"),
            (lambda: model([[-1, 2]]), "token -1 at"),
            (lambda: model([[]]), "0 tokens; this model accepts 1 to 16"),
            (lambda: model(numpy.zeros((0, 3), int)), "no sequence"),
            (lambda: model(numpy.zeros((1, 17), int)), "17 tokens; this model accepts 1 to 16"),
            (lambda: model({"ids": [[1, 2]], "lengths": [3]}), "lengths: 3"),
            (lambda: model({"ids": [[1, 2]], "lengths": [2, 2]}), "lengths: 2 for 1"),
            (lambda: model.loss([[1, 2]], [[10, 0]]), "labels: 10; outputs are 0 to 9"),
            (lambda: model.loss([[1, 2]], [[1]]), "labels: 1;"),
            (lambda: model.loss(["1 2"], ["2 1", "1 1"]), "1 texts and 2 targets"),
            (lambda: model.loss(["1 2"], ["2 x"]), "no token x"),
            (lambda: model.gradients(["1 2"], names="logits", cotangent=numpy.ones((1, 2, 9))), r"\(1, 2, 9\)"),
            (lambda: model.gradients(["1 2"], ["2 1"], "logits", replace={z: with_nan}),
             f"replace {z}: NaN for row 0 at position 1, as an array has it beyond the end of a shorter row; leave it out"),
            (lambda: model(["1", "1 2"], replace={z: with_nan[:1]}), "NaN for row 1 at position 1"),
            (lambda: model.gradients(["1 2"], names="logits", cotangent=[[[0.0] * 10, [numpy.nan] + [0.0] * 9]]),
             "cotangent: NaN for row 0 at position 1; put 0 where"),
            (lambda: model.tokens([]), "texts: none; give at least 1"),
            (lambda: run.attention([]), "texts: none; give at least 1"),
            (lambda: model(["1 ten"]), "no token ten"),
            (lambda: model.tokens(["1", "ten"]), "text 1: .*no token ten"),
            (lambda: model.texts([[10]]), "token 10"),
            (lambda: model.data("tests"), "no split tests"),
            (lambda: model.data("test", 0), "count 0"),
            (lambda: model.data("test", [300]), "300"),
            (lambda: model.data("test", [-1]), "-1"),
            (lambda: model.data("test", []), "no sequence")):
        with pytest.raises(thimble.InputError, match=message) as error:
            call()
        assert error.value.status == 2 and error.value.command[1] == "serve"
        assert (model(["1 2"]) == logits).all()
    assert process_of(model) == pid
    for call, message in ((lambda: model([[1.5]]), "ids: must be integers, not float64"),
                          (lambda: model([[2 ** 40]]), "ids: holds 1099511627776, which is too large"),
                          (lambda: model(["1"], replace={z: "zero"}), f"replace {z}: must be \"mean\" or numbers, not 'zero'"),
                          (lambda: model(["1"], replace={z: lambda x: x}), "must be \"mean\" or numbers, not <function"),
                          (lambda: model(["1"], replace={z: None}), "must be \"mean\" or numbers, not None"),
                          (lambda: model(["1"], replace={z: (0, None)}), r'a part is \(value, {"head": 0}\)'),
                          (lambda: model(["1"], replace={z: (1.0, 2.0, 3.0)}), r'a part is \(value, {"head": 0}\)'),
                          (lambda: model(["1"], replace={z: (0, {"heads": 0})}), "no 'heads'; it is head, position or mask"),
                          (lambda: model(["1"], replace={z: (0, {"mask": [0, 1]})}), "mask must be booleans, not int64")):
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_an_array_of_too_many_dimensions(model):
    with pytest.raises(thimble.InputError, match="at most 4"):
        model(["1 2"], replace={LAST_Z: numpy.ones((1, 1, 2, 2, 16))})
    assert model(["1 2"]).shape == (1, 2, 10)


def test_what_does_not_open_says_why(run, tmp_path):
    with pytest.raises(thimble.InputError) as error:
        run.model({"model.headz": 1, "train.steps": -1}).vocabulary
    assert len(error.value.problems) == 2 and "did you mean model.heads" in error.value.problems[0]
    copy = shutil.copytree(run.directory, tmp_path / "copy")
    (copy / "checkpoints/final.safetensors").unlink()
    model = thimble.Run(copy).model()
    with pytest.warns(UserWarning, match="final.safetensors: missing, though training has ended; this is step 40") as told:
        model(["1 2"])
    assert told[0].filename == __file__
    shutil.rmtree(copy)
    assert model(["1 2"]).shape == (1, 2, 10)  # it holds the weights
    model.close()
    with pytest.raises(thimble.InputError):
        model(["1 2"])


def test_a_killed_process_is_told_and_replaced(run):
    with run.model() as model:
        pid, logits = process_of(model), model(["1 2"])
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(thimble.ThimbleError, match="the program was ended by signal 9") as error:
            model(["1 2"])
        assert error.value.status == -9 and not isinstance(error.value, ValueError)
        assert (model(["1 2"]) == logits).all() and process_of(model) != pid and not is_alive(pid)


@pytest.mark.parametrize("large", [False, True])
def test_an_interrupt_ends_the_process(run, large):
    with run.model() as model:
        pid, logits = process_of(model), model(["1 2"])
        os.kill(pid, signal.SIGSTOP)  # so that the call takes long
        ids = numpy.zeros((10 ** 5 if large else 1, 16), int)  # the large one stops while it is sent
        timer = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            model(ids)
        timer.join()
        assert not is_alive(pid) and (model(["1 2"]) == logits).all() and process_of(model) != pid


def test_ctrl_c_at_a_prompt_is_not_for_the_process(run):
    with run.model() as model:
        assert os.getpgid(process_of(model)) != os.getpgid(0)


def test_no_process_is_left(run):
    model = run.model()
    assert repr(model).startswith("Model(['serve', ") and model._server._process is None  # nothing started
    pids = [process_of(model)]
    model.close()
    model.close()
    assert not is_alive(pids[0]) and model.vocabulary[3] == "3"
    pids.append(process_of(model)) if model(["1"]) is not None else None
    del model
    gc.collect()
    with run.model() as model:
        pids.append(process_of(model))
    assert len(set(pids)) == 3 and not any(map(is_alive, pids))
    code = f"import thimble, os, sys\nmodel = thimble.Run({str(run.directory)!r}).model()\nmodel(['1'])\n" \
        "print(model._server._process.process.pid, flush=True)\nif sys.argv[1:]: os.kill(os.getpid(), 9)"
    for arguments in ([], ["killed"]):
        out = subprocess.run([sys.executable, "-W", "error", "-c", code, *arguments], capture_output=True, text=True, check=False)
        assert out.stderr == "", out.stderr
        deadline = threading.Event()
        for _ in range(100):
            state = pathlib.Path(f"/proc/{out.stdout.strip()}/stat")
            if not is_alive(int(out.stdout)) or (state.exists() and state.read_text().split(")")[1].split()[0] == "Z"):
                break
            deadline.wait(0.05)
        else:
            pytest.fail("it outlives its parent")


def in_a_fork(work):
    """What a forked process returns."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writes, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writes)
    with open(reads, "rb") as stream:
        said = stream.read()
    os.waitpid(pid, 0)
    return json.loads(said)


def test_a_fork_starts_its_own(run):
    with run.model() as model:
        pid, logits = process_of(model), model(["1 2"])

        def work():
            same = bool((model(["1 2"]) == logits).all())
            theirs = process_of(model)
            model.close()
            return [same, theirs, is_alive(theirs)]

        same, theirs, lives = in_a_fork(work)
        assert same and theirs != pid and not lives
        assert in_a_fork(lambda: len(os.listdir("/proc/self/fd"))) < len(os.listdir("/proc/self/fd"))
        assert (model(["1 2"]) == logits).all() and process_of(model) == pid
        held, release = threading.Event(), threading.Event()

        def hold():
            with model._server.lock:
                held.set()
                release.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        assert in_a_fork(work)[0]  # though a thread was in a call
        release.set()
        thread.join()
        sleeper = os.fork()
        if sleeper == 0:
            signal.pause()
        model.close()  # while another holds what it had open
        os.kill(sleeper, signal.SIGKILL)
        os.waitpid(sleeper, 0)
        assert not is_alive(pid)


def test_calls_from_threads(model):
    data = model.data("test", 64)
    alone = [model(data[i:i + 16]) for i in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for results in [pool.map(lambda i: model(data[i:i + 16]), list(range(4)) * 8)]:
            assert all((result == alone[i % 4]).all() for i, result in enumerate(results))


def test_large_requests_and_replies(model):
    data = model.data("train", [i % 500 for i in range(2500)])
    logits, cache = model.run_with_cache(data, ["*hook_z", "*hook_pattern"])
    assert sum(x.nbytes for x in cache.values()) > 20e6
    again, other = model.run_with_cache(data, ["*hook_z"], replace=cache)  # as large in the other direction
    assert (again == logits).all() and (other[LAST_Z] == cache[LAST_Z]).all() and (logits[:500] == logits[500:1000]).all()


def test_weights_with_a_config(run, model):
    from thimble import _arguments

    arguments = _arguments.serve(None, None, None, 1, weights=run.path, config=run.directory / "config.yaml")
    with thimble.Model(arguments) as other:
        assert (other(["1 2 3"]) == model(["1 2 3"])).all()
    with thimble.Run(run.directory, checkpoint="best").model() as best:
        assert best.description["weights"].endswith("best.safetensors") and best(["1"]).shape == (1, 1, 10)


def test_weights_of_half_precision(run):
    for dtype in ("F16", "BF16"):
        arrays = {name: x.astype("f4") for name, x in run.weights.items()}
        bits = {name: (x.view("u4") >> 16).astype("<u2") if dtype == "BF16" else x.astype("<f2") for name, x in arrays.items()}
        header, data = {}, b""
        for name, x in bits.items():
            header[name] = {"dtype": dtype, "shape": x.shape, "data_offsets": [len(data), len(data) + x.nbytes]}
            data += x.tobytes()
        text = json.dumps(header).encode()
        pathlib.Path("half.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
        with thimble.open(run.directory / "config.yaml", "half.safetensors") as model:
            cache = model.run_with_cache(["1 2 3"])[1]
            made = cache["blocks.0.hook_resid_pre"][0] @ model.W_V[0, 1]
            made += arrays["encoder.layers.0.self_attn.in_proj_bias"][64 + 16:]
            assert model.W_E.dtype == numpy.float32 and numpy.allclose(made, cache["blocks.0.attn.hook_v"][0, :, 1], atol=1e-2)
            assert numpy.allclose(model.W_E, arrays["token_embedding.weight"], atol=2e-2)


def test_a_place_stays_when_the_folder_changes(run, tmp_path, monkeypatch):
    with thimble.open(os.path.relpath(run.directory / "config.yaml"), os.path.relpath(run.path)) as model:
        logits = model(["1 2"])
        model.close()
        monkeypatch.chdir(tmp_path)
        assert (model(["1 2"]) == logits).all() and (model.W_E == run.weights["token_embedding.weight"]).all()


def test_without_numpy():
    code = "import sys\nsys.modules['numpy'] = None\nimport thimble\ntry: thimble.Model([])\n" \
        "except ImportError as error: print(error)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "arrays need numpy; install it: pip install numpy\n"


def test_weights_that_are_written_again_are_not_mixed(folder):
    run = thimble.train("reverse", {"train.steps": 5, "train.schedule.warmup": 0, "data.train": 200, "model.heads": 2}, out="again")
    model, early = run.model(), run.model()
    model(["1 2 3"]), early(["1 2 3"])
    before = early.W_Q
    run.resume({"train.steps": run.result["steps"] + 1})
    assert (early.W_Q == before).all()  # both of its process
    with pytest.raises(ValueError, match=r"final.safetensors: was written again; close\(\) this model, so that it reads the new"):
        model.W_Q
    for each in (model, early):
        each.close()
        each(["1 2 3"])
        assert (each.W_Q != before).any()
        each.close()


if __name__ == "__main__":
    run_tests(__file__)
