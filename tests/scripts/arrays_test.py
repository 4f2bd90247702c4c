"""The arrays of `thimble serve` are those of PyTorch in float64, which arrays_fixture.py has written: all sites, losses and
gradients of small models, as they are and with values replaced. Usage: arrays_test.py THIMBLE_BINARY SOURCE_DIR"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy

thimble, source = (pathlib.Path(x).resolve() for x in sys.argv[1:3])
sys.path.insert(0, str(source / "python"))
from thimble import safetensors_file  # noqa: E402

TOLERANCE = 1e-12  # of the largest number of an array, or of 1
MODELS = 12
# Stands beyond the lengths of sequences in a request, and must not matter; values are often a reply's, with NaN there.
BEYOND = {"ids": 999, "sources": 999, "labels": 0, "values": numpy.nan, "cotangent": numpy.nan}
TYPES = {"bool": "BOOL", "int32": "I32", "float64": "F64"}
count, worst = 0, 0.0


class Client:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([thimble, "serve", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request, arrays=None):
        """The reply, and arrays by name: those of all messages, joined."""
        header, data = {"__metadata__": {"thimble": json.dumps(request)}}, b""
        for name, array in (arrays or {}).items():
            begin, data = len(data), data + array.tobytes()
            header[name] = {"dtype": TYPES[array.dtype.name], "shape": array.shape, "data_offsets": [begin, len(data)]}
        text = json.dumps(header).encode()
        self.process.stdin.write(struct.pack("<Q", len(text)) + text + data)
        self.process.stdin.flush()
        found, reply = {}, {"last": False}
        while not reply.get("last", True):
            size, = struct.unpack("<Q", self.process.stdout.read(8))
            header = json.loads(self.process.stdout.read(size))
            reply = json.loads(header.pop("__metadata__")["thimble"])
            assert reply["ok"], reply
            data = self.process.stdout.read(max((entry["data_offsets"][1] for entry in header.values()), default=0))
            for name, entry in header.items():
                assert entry["dtype"] == "F64", (name, entry)
                array = numpy.frombuffer(data[slice(*entry["data_offsets"])], "<f8").reshape(entry["shape"])
                found.setdefault(name, []).append(array)
        return reply, {name: numpy.concatenate(pieces) for name, pieces in found.items()}

    def close(self):
        assert self.process.communicate(timeout=60) == (b"", None) and self.process.returncode == 0


def inside(shape, batch):
    """Where the array of a site, of a shape such as "(B, T, 2, 4)", lies within the lengths of sequences."""
    axes = shape.strip("()").split(", ")
    lengths = {"T": batch["lengths"], "S": batch.get("source_lengths")}
    longest = {"B": len(batch["lengths"]), "T": batch["ids"].shape[1], "S": batch.get("sources", batch["ids"]).shape[1]}
    flags = numpy.ones([longest[axis] if axis in longest else int(axis) for axis in axes], bool)
    for n, axis in enumerate(axes):
        if axis in lengths:
            own = numpy.arange(longest[axis]) < lengths[axis][:, None]
            flags &= own.reshape([len(own) if i == 0 else longest[axis] if i == n else 1 for i in range(len(axes))])
    return flags


def compare(what, found, here, values, elsewhere):
    """Whether an array has the values, in its order, where it is asked for, and another one elsewhere."""
    global count, worst
    assert found.shape == here.shape, f"{what}: shape {found.shape}, not {here.shape}"
    assert here.sum() == values.size > 0, f"{what}: {here.sum()} numbers, PyTorch has {values.size}"
    finite = numpy.isfinite(values)  # all but the scores of hidden keys
    assert numpy.array_equal(found[here][~finite], values[~finite]), f"{what}: is not infinite where PyTorch's is"
    difference = abs(found[here][finite] - values[finite]).max() / max(1.0, abs(values[finite]).max())
    assert difference <= TOLERANCE, f"{what}: differs from PyTorch's by {difference:.3g}"
    assert numpy.array_equal(found[~here], numpy.full((~here).sum(), elsewhere), equal_nan=True), f"{what}: beyond lengths"
    count, worst = count + 1, max(worst, difference)


def part(arrays, prefix):
    return {name[len(prefix):]: array for name, array in arrays.items() if name.startswith(prefix)}


def check(file, work):
    arrays, metadata = safetensors_file.read(file)
    batch, name = part(arrays, "batch."), file.stem
    safetensors_file.write(work / "weights.safetensors", {key: x.astype("<f8") for key, x in part(arrays, "parameter.").items()})
    (work / "config.yaml").write_text(metadata["config"])
    client = Client("--weights", work / "weights.safetensors", "--config", work / "config.yaml", "train.precision=float64")
    said, _ = client.ask({"do": "describe"})
    shapes = {site["name"]: site["shape"] for site in said["sites"]}
    here = {site: inside(shape, batch) for site, shape in shapes.items()}
    weights = {one["name"]: numpy.ones(one["shape"], bool) for one in said["parameters"]}
    sent = {key: x.astype("<i4") for key, x in batch.items()}
    replaced = {key: x.astype(bool if key.startswith("mask") else "<f8") for key, x in part(arrays, "request.").items()}
    replace = json.loads(metadata["replace"])
    padded = {"ids": "(B, T)", "sources": "(B, S)", "cotangent": shapes["logits"],
              **{one["values"]: shapes[one["site"]] for one in replace if "values" in one}}
    if batch["labels"].ndim > 1:
        padded["labels"] = "(B, T)"
    for given in (sent, replaced):
        for key in padded.keys() & given.keys():
            if len(given[key]) == len(batch["lengths"]):  # not one for all sequences
                given[key][~inside(padded[key], batch)] = BEYOND.get(key, BEYOND["values"])
    second = {"replace": replace, **({"cotangent": "cotangent"} if "cotangent" in replaced else {})}
    scales = {key for key in here if key.endswith("hook_scale")}  # have no gradients
    flags = {"loss": batch["labels"] >= 0, **here,
             **{"gradient." + key: x for key, x in {**here, **weights}.items() if key not in scales}}
    names = json.loads(metadata["names"])
    assert sorted(names) == sorted(flags), f"{name}: other arrays than PyTorch's: {set(names) ^ set(flags)}"
    for kind, request, given, places in (("plain", {}, sent, arrays["places"][0]),
                                         ("replaced", second, {**sent, **replaced}, arrays["places"][1])):
        _, found = client.ask({"do": "forward", "return": ["*", "loss"], "gradients": ["*"], **request}, given)
        assert found.keys() == flags.keys(), f"{name}: {found.keys() ^ flags.keys()}"
        values = {key: arrays["numbers"][begin:begin + flags[key].sum()] for key, begin in zip(names, places, strict=True)}

        def check_one(key, array, how=""):
            elsewhere = 0 if key.startswith("gradient.") else numpy.nan
            compare(f"{name}, {kind}: {key}{how}", array, flags[key], values[key], elsewhere)

        for key, array in found.items():
            check_one(key, array)
        # Asks for each alone: what else is asked for does not matter, but for the rounding of sums of gradients.
        for key in (*here, *weights):
            gradients = [key] if key not in scales else []
            _, alone = client.ask({"do": "forward", "return": [key] if key in here else [], "gradients": gradients, **request}, given)
            assert alone.keys() == ({key} if key in here else set()) | {"gradient." + x for x in gradients}, alone.keys()
            for one, array in alone.items():
                check_one(one, array, ", alone")
                assert one.startswith("gradient.") or array.tobytes() == found[one].tobytes(), f"{name}, {kind}: {one} alone"
    client.close()


files = sorted((source / "tests" / "fixtures" / "arrays").glob("*.safetensors"))
assert len(files) == MODELS, f"{len(files)} files in tests/fixtures/arrays, not {MODELS}"
with tempfile.TemporaryDirectory() as directory:
    for each in files:
        check(each, pathlib.Path(directory))
print(f"arrays_test: {count} arrays of {len(files)} models, worst difference {worst:.2g}")
