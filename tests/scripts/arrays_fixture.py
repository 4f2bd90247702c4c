#!/usr/bin/env python3
"""Writes tests/fixtures/arrays: activations and gradients of small models from PyTorch in float64, for arrays_test.py.

Usage: arrays_fixture.py THIMBLE_BINARY SOURCE_DIR   The program is asked only for shapes and initial weights.

Models are written out in arrays_torch.py, one sequence at a time and without padding, so that what padding does is checked
as well.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy
import torch
import yaml

from arrays_torch import expected, layout

COMMON = "data: {train: 20, validation: 5, test: 5}\ntrain: {steps: 1, batch: 4, threads: 1, precision: float64}\n"
NEXT = "task: {name: sort, symbols: 6, length: 4}\n"  # of which a model reads seven tokens
COPY = "task: {name: copy, symbols: 6, length: 7, min_length: 2}\n"
# Lists the config, the lengths of sequences and of sources, and what is replaced: sites, and where.
# A replacement has values for each sequence, or with `one` the same for all, or with `zero` none; its mask is random.
MODELS = {
    "post": (COPY + "model: {d_model: 8, heads: 2, layers: 2, d_ff: 8, norm_epsilon: 0.01, output: {hidden: 6}}\n",
             [4, 1], [], [("blocks.0.attn.hook_z", {"heads": [0]}), ("hook_pos_embed", {"positions": [0]}),
                             ("blocks.0.hook_mlp_in", {"positions": [1], "zero": True})]),
    "rotary": (NEXT + """model: {d_model: 8, heads: 2, layers: 1, d_ff: 8, norm: pre, activation: gelu, positions: rotary,
  attention: {mask: causal}, output: {per: next}}
""", [4, 2, 3], [], [("blocks.0.attn.hook_rot_q", {"mask": True, "heads": [1]}),
                     ("blocks.0.attn.hook_pattern", {"mask": True}), ("blocks.0.hook_mlp_out", {"positions": [1]})]),
    "alibi": (COPY + """model: {d_model: 9, heads: 3, layers: 1, d_ff: 8, norm: pre, activation: gelu_tanh, positions: alibi,
  attention: {d_key: 2, d_value: 4}}
""", [4, 1, 2], [], [("blocks.0.attn.hook_z", {"heads": [0, 2], "positions": [0, 2]}),
                     ("blocks.0.attn.hook_attn_scores", {"mask": True}),
                     ("blocks.0.attn.hook_k", {"mask": True, "one": True})]),
    "grouped": (NEXT + """model: {d_model: 8, heads: 4, layers: 1, d_ff: 8, norm: pre, norm_type: rms, bias: false, gated: true,
  activation: silu, positions: rotary, rotary: halves, rotary_base: 100, attention: {mask: causal, kv_heads: 2, d_key: 4},
  output: {per: next}}
""", [4, 1, 2], [], [("blocks.0.attn.hook_rot_k", {"heads": [1], "positions": [0, 2]}),
                     ("blocks.0.attn.hook_attn_scores", {"heads": [3], "positions": [2, 3]}),
                     ("blocks.0.attn.hook_v", {"mask": True}), ("blocks.0.mlp.hook_pre_linear", {"positions": [3]})]),
    "sequence": ("task: {name: majority, symbols: 6, length: 7}\n" + """model: {d_model: 8, heads: 2, layers: 1, d_ff: 8,
  norm: pre, positions: learned, norm_embedding: true, activation: tanh, output: {per: sequence, pooling: mean}}
""", [5, 3], [], [("hook_embed", {"positions": [0, 4], "one": True}), ("blocks.0.attn.hook_q", {"heads": [1]}),
                     ("logits", {"mask": True})]),
    "additive": (COPY + """model: {d_model: 8, heads: 2, layers: 1, d_ff: 8, norm: pre, positions: learned,
  attention: {score: additive, combine: sum, kv_heads: 1, mask: causal}}
""", [4, 1, 3], [], [("blocks.0.attn.hook_q", {"mask": True}), ("blocks.0.attn.hook_pattern", {"heads": [1], "mask": True}),
                     ("blocks.0.attn.hook_attn_scores", {"mask": True}), ("hook_pos_embed", {"mask": True})]),
    "linear": (COPY + """model: {d_model: 8, heads: 2, layers: 1, d_ff: 8, norm: pre, activation: gelu, gated: true,
  norm_final: false, attention: {score: linear}}
""", [4, 1, 3], [], [("blocks.0.attn.hook_pattern", {"heads": [0], "positions": [0, 2], "zero": True}),
                     ("blocks.0.attn.hook_pattern", {"mask": True}), ("blocks.0.hook_resid_mid", {"mask": True})]),
    "tied": (COPY + """model: {d_model: 8, heads: 2, layers: 1, d_ff: 8, positions: none, activation: gelu,
  attention: {score: general, tie_query_key: true}, output: {tied: true}}
""", [4, 2, 3], [], [("blocks.0.attn.hook_q", {"heads": [0]}), ("blocks.0.hook_attn_out", {"mask": True})]),
    "convolution": (COPY + """model: {d_model: 8, layers: 2, d_ff: 8, mixer: convolution, activation: silu}
""", [4, 2], [], [("blocks.0.hook_attn_out", {"positions": [1, 3]}), ("blocks.1.mlp.hook_pre", {"mask": True})]),
    "encoder_decoder": (COPY + """model: {kind: encoder_decoder, d_model: 8, heads: 2, layers: 1, d_ff: 8, norm: pre,
  positions: learned, activation: gelu, output: {per: next}}
""", [3, 1], [1, 3], [("encoder.ln_final.hook_normalized", {"positions": [0, 2]}),
                            ("decoder.blocks.0.cross.hook_attn_scores", {"heads": [0]}),
                            ("decoder.blocks.0.cross.hook_pattern", {"mask": True}),
                            ("decoder.blocks.0.cross.hook_v", {"heads": [1], "positions": [1]})]),
    "recurrent_additive": (COPY + """model: {kind: recurrent, d_model: 8, attention: {score: additive}, output: {per: next}}
""", [4, 2, 3], [3, 4, 1], [("cross.hook_pattern", {"mask": True}), ("decoder.hook_embed", {"positions": [1]})]),
    "recurrent_general": (COPY + """model: {kind: recurrent, d_model: 8, attention: {score: general}, output: {per: next}}
""", [4, 2, 3], [3, 4, 1], [("cross.hook_attn_scores", {"positions": [2]}),
                                ("cross.hook_z", {"positions": [0, 2]}), ("encoder.hook_states", {"mask": True})]),
}
WITH_COTANGENT = ("rotary", "tied", "encoder_decoder")  # have in their second pass the gradients of a product with one
class Serve:
    """A model of `thimble serve`."""

    def __init__(self, thimble, *arguments):
        self.process = subprocess.Popen([thimble, "serve", *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def describe(self):
        text = json.dumps({"__metadata__": {"thimble": '{"do": "describe"}'}}).encode()
        said, _ = self.process.communicate(struct.pack("<Q", len(text)) + text)
        return json.loads(json.loads(said[8:])["__metadata__"]["thimble"])


def initial(thimble, config, safetensors_file):
    """What `describe` says of a model that the program made, and its weights, all of which are moved."""
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        (work / "config.yaml").write_text(config)
        subprocess.run([thimble, "train", work / "config.yaml", "--out", work / "run", "--quiet"], check=True)
        arrays, _ = safetensors_file.read(work / "run" / "checkpoints" / "final.safetensors")
        said = Serve(thimble, work / "run").describe()
    draw = torch.Generator().manual_seed(zlib.crc32(config.encode()))
    # Moves all, as an initial bias of 0 or weight of 1 would hide mistakes.
    return said, {one["name"]: arrays[one["name"]] + 0.2 * torch.randn(one["shape"], generator=draw).numpy()
                  for one in said["parameters"]}


def shape_of(site, sequences, length, source):
    sizes = {"B": sequences, "T": length, "S": source}
    return [sizes[x] if x in sizes else int(x) for x in site["shape"].strip("()").split(", ")]


def random_batch(draw, lengths, source_lengths, vocabulary, outputs, per_sequence):
    batch = {}
    for ids, name, rows in (("ids", "lengths", lengths), ("sources", "source_lengths", source_lengths)):
        if rows:
            batch[name] = numpy.array(rows)
            batch[ids] = draw.integers(vocabulary, size=(len(rows), max(rows)))
            batch[ids][numpy.arange(max(rows)) >= batch[name][:, None]] = 0
    shape = (len(lengths),) if per_sequence else batch["ids"].shape
    batch["labels"] = draw.integers(outputs, size=shape)
    if not per_sequence:
        batch["labels"][draw.random(shape) < 0.2] = -1
        batch["labels"][numpy.arange(max(lengths)) >= batch["lengths"][:, None]] = -1
    return batch


def replacements(draw, wanted, sites, sequences, length, source):
    """What a request has as `replace`, with arrays in place of their names."""
    out = []
    for name, where in wanted:
        one = {"site": name, **{key: where[key] for key in ("heads", "positions") if key in where}}
        shape = shape_of(sites[name], 1 if where.get("one") else sequences, length, source)
        if not where.get("zero"):
            values = draw.random(shape) if name.endswith("pattern") else draw.standard_normal(shape)
            one["values"] = values.astype("<f2").astype(float)
        if where.get("mask"):
            one["mask"] = draw.random(shape) < 0.4
        out.append(one)
    return out


def main():
    thimble, source = (pathlib.Path(x).resolve() for x in sys.argv[1:3])
    sys.path.insert(0, str(source / "python"))
    from thimble import safetensors_file
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    folder = source / "tests" / "fixtures" / "arrays"
    folder.mkdir(exist_ok=True)
    for name, (config, lengths, source_lengths, wanted) in MODELS.items():
        config = config + COMMON
        draw = numpy.random.default_rng(zlib.crc32(name.encode()))
        said, parameters = initial(thimble, config, safetensors_file)
        parameters = {key: x.astype("<f2").astype(float) for key, x in parameters.items()}  # take less room in a file
        sites = {site["name"]: site for site in said["sites"]}
        vocabulary = len(said["vocabulary"])
        batch = random_batch(draw, lengths, source_lengths, vocabulary, len(said["outputs"]) or vocabulary,
                             sites["logits"]["shape"].count(",") == 1)
        sizes = len(lengths), max(lengths), max(source_lengths, default=0)
        replace = replacements(draw, wanted, sites, *sizes)
        cotangent = None
        if name in WITH_COTANGENT:
            cotangent = draw.standard_normal(shape_of(sites["logits"], *sizes)).astype("<f2").astype(float)
            cotangent[numpy.arange(max(lengths)) >= batch["lengths"][:, None]] = 0
        model = yaml.safe_load(config)["model"]
        arrays = {"parameter." + key: x.astype("<f2") for key, x in parameters.items()}
        arrays.update({"batch." + key: x.astype("<i8") for key, x in batch.items()})
        request = []
        for i, one in enumerate(replace):
            request.append({key: x if key in ("site", "heads", "positions") else f"{key}{i}" for key, x in one.items()})
            arrays.update({f"request.{key}{i}": x.astype("<f2") for key, x in one.items() if key in ("values", "mask")})
        if cotangent is not None:
            arrays["request.cotangent"] = cotangent.astype("<f2")
        passes = [expected(model, parameters, batch, []), expected(model, parameters, batch, replace, cotangent)]
        names = list(passes[0])
        assert list(sites) == [x for x in names if x in sites], f"{name}: sites of another name or order"
        # Stores arrays of the same numbers once.
        known, numbers, places = {}, numpy.zeros(0), []
        for found in passes:
            assert list(found) == names and not any(numpy.isnan(x).any() for x in found.values()), name
            for x in found.values():
                places.append(known.setdefault(x.tobytes(), len(numbers)))
                if places[-1] == len(numbers):
                    numbers = numpy.concatenate([numbers, x.ravel()])
        arrays.update({"numbers": numbers.astype("<f8"), "places": numpy.array(places, "<i8").reshape(len(passes), -1)})
        file = folder / f"{name}.safetensors"
        safetensors_file.write(file, arrays, {"config": config, "replace": json.dumps(request), "names": json.dumps(names)})
        print(f"{file.name}: {file.stat().st_size} bytes, {len(places)} arrays, {len(set(places))} stored")


if __name__ == "__main__":
    main()
