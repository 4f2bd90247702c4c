"""PyYAML reads every YAML that thimble ships or writes as thimble means it: same values, same types.

Usage: yaml_test.py THIMBLE_BINARY SOURCE_DIR
"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import yaml

try:
    import jsonschema
except ImportError:
    jsonschema = None

thimble, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SMALL = ["train.steps=4", "train.schedule.warmup=0", "train.evaluate_every=0", "train.batch=8", "data.train=64",
         "data.validation=8", "data.test=8", "train.optimizer.lr=3e-5"]


def run(*arguments):
    done = subprocess.run([thimble, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"thimble {' '.join(map(str, arguments))}: {done.stderr}"
    return done.stdout


def leaves(node, path=""):
    """Every value with its dotted path, of maps and lists."""
    if isinstance(node, (dict, list)):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, node


def typed(node):
    return [(path, type(value), value) for path, value in leaves(node)]


def require_same(what, text, expected):
    """The YAML text holds the values and types of the JSON."""
    ours, theirs = typed(yaml.safe_load(text)), typed(expected)
    wrong = [pair for pair in zip(ours, theirs) if pair[0] != pair[1]]
    assert len(ours) == len(theirs) and not wrong, f"{what}: PyYAML reads {wrong or ours}"


def is_number(text):
    try:
        return float(text) is not None
    except ValueError:
        return False


def require_meant(what, text):
    """No number is text for PyYAML, and no text anything else: nothing, a date, an octal or sexagesimal number."""
    def check(node):
        if not isinstance(node, yaml.ScalarNode):
            for child in node.value:
                for each in child if isinstance(child, tuple) else (child,):
                    check(each)
            return
        kind, plain = node.tag.rpartition(":")[2], node.style is None
        meant = {"str": not (plain and is_number(node.value)), "float": True, "bool": node.value in ("true", "false"),
                 "int": re.fullmatch(r"[+-]?(0|[1-9]\d*)", node.value)}.get(kind, False)
        assert meant, f"{what}:{node.start_mark.line + 1}: PyYAML reads {node.value} as {kind}"
    root = yaml.compose(text)
    if root is not None:
        check(root)


def require_refused(text):
    try:
        require_meant("text", text)
    except AssertionError:
        return
    assert False, f"the check accepts {text}"


def shipped(work):
    files = sorted((source / "configs").rglob("*.yaml"))
    assert len(files) > 40
    schema = json.loads(run("config", "schema"))
    for file in files:
        require_meant(file, file.read_text())
        if file.parent.name in ("configs", "bench", "controls"):
            shown = run("config", "show", file, "--json", work / "shown.json")
            require_same(f"config show {file}", shown, json.loads((work / "shown.json").read_text()))
            for values in (file.read_text(), shown) if jsonschema else ():
                jsonschema.validate(yaml.safe_load(values), schema)
    for page in [source / "README.md", *sorted((source / "docs").glob("*.md"))]:
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            require_meant(page, block)


def written(directory, work):
    """Every YAML below a directory, and the configs in its checkpoints."""
    texts = {path: path.read_text() for path in directory.rglob("*.yaml")}
    for path in directory.rglob("*.safetensors"):
        content = path.read_bytes()
        size = struct.unpack_from("<Q", content)[0]
        texts[path] = json.loads(content[8:8 + size])["__metadata__"]["config"]
    assert texts, f"{directory}: no YAML"
    for path, text in texts.items():
        (work / "copy.yaml").write_text(text)
        values = json.loads(run("config", "show", work / "copy.yaml", "--quiet", "--json", "-"))
        if not values["task"].get("skip_empty", True):  # newer than version 0.3.0, so written only where it is not the default
            del values["task"]["skip_empty"]
        require_same(path, text, values)
    return texts


def paths(work):
    """Data files whose names YAML 1.1 would read as something else, or that need an escape."""
    for number, name in enumerate(["no", "1:30 # é: 'x', \"y\"", "back\\slash", "line\u2028separator", "\ufeffmark", "😀"]):
        folder = work / name
        folder.mkdir()
        (folder / "~.tsv").write_text("".join(f"a {i}\tb {i}\n" for i in range(200)))
        (folder / "config.yaml").write_text("task: {name: file, file: '~.tsv'}\n")
        run("train", folder / "config.yaml", *SMALL, "--out", work / f"paths{number}", "--quiet")
        text = (work / f"paths{number}" / "config.yaml").read_text()
        assert yaml.safe_load(text)["task"]["file"] == str(folder / "~.tsv"), text
        written(work / f"paths{number}", work)


def commands(work):
    base = source / "configs" / "reverse.yaml"
    run("train", base, *SMALL, "--out", work / "run", "--quiet")
    texts = written(work / "run", work)
    assert "    lr: 3.0e-05\n" in texts[work / "run" / "config.yaml"]
    (work / "sweep.yaml").write_text(f"config: {base}\ngrid: {{train.optimizer.lr: [1e-5, 0.001], model.heads: [1, 2]}}\n")
    run("sweep", work / "sweep.yaml", *SMALL[:-1], "--out", work / "sweep", "--quiet")
    assert len(written(work / "sweep", work)) >= 8
    (work / "experiments").mkdir()
    (work / "experiments" / "one.yaml").write_text(
        f"statement: A loss.\nsource: this test\nkind: golden\nseeds: [7]\nruns: {{short: {{config: {base}, set: "
        f"{{{', '.join(pair.replace('=', ': ') for pair in SMALL)}}}}}}}\n"
        "values: {loss: {run: short, of: train, path: test.loss}}\nconditions: [{value: loss, below: 100}]\n")
    run("reproduce", "one", "--experiments", work / "experiments", "--out", work / "reproduced", "--quiet")
    assert len(written(work / "reproduced", work)) >= 2


def older(work):
    """A run whose config was written by 0.2, which had 3e-05 and no keys of later versions, opens and resumes."""
    path = work / "run" / "config.yaml"
    text = re.sub(r"\.0(?=e-|$)", "", path.read_text(), flags=re.MULTILINE)
    text = re.sub(r"^ +(norm_epsilon|rotary|rotary_base|final): .*\n", "", text, flags=re.MULTILINE)
    assert "lr: 3e-05\n" in text and "epsilon: 1e-08\n" in text and "rotary" not in text
    path.write_text(text)
    run("eval", work / "run", "--quiet")
    run("train", work / "run", "--resume", "train.steps=6", "--quiet")
    written(work / "run", work)


for refused in ("a: 3e-05", "a: [1e-8]", "a: yes", "a: ~", "a: 1:30", "a: 010", "a: 1_000", "a: 0x10", "a: 2001-01-01", "a:"):
    require_refused(refused)
with tempfile.TemporaryDirectory() as directory:
    work = pathlib.Path(directory)
    shipped(work)
    commands(work)
    older(work)
    paths(work)
