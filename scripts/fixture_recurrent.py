"""Reference values of recurrent nets; see make_fixtures.py."""

import pathlib
import sys

import torch
from torch import nn

from fixture_file import Fixture, leaf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
from thimble.torch_models import Recurrent  # noqa: E402


def gru(directions, padding):
    """States of all directions stand side by side; after a sequence's end they have no cotangent."""
    batch, time, inputs, hidden = 3, 5, 4, 6
    fixture = Fixture(f"gru_{directions}{'_padding' if padding else ''}", hidden=hidden)
    module = nn.GRU(inputs, hidden, batch_first=True, bidirectional=directions == "both")
    fixture.randomise(module)
    leaves = {"x": leaf(fixture.normal(batch, time, inputs)), **dict(module.named_parameters())}
    lengths = torch.tensor([3, 5, 1] if padding else [time] * batch)
    packed = nn.utils.rnn.pack_padded_sequence(leaves["x"], lengths, batch_first=True, enforce_sorted=False)
    states, last = module(packed)
    states = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)[0]
    outputs = {"states": states, "last": last.transpose(0, 1).reshape(batch, -1)}
    cotangents = {name: fixture.normal(*output.shape) for name, output in outputs.items()}
    cotangents["states"] *= (torch.arange(time) < lengths[:, None])[:, :, None]
    gradients = torch.autograd.grad(list(outputs.values()), list(leaves.values()), list(cotangents.values()))
    fixture.add({**leaves, **outputs})
    fixture.add(cotangents, prefix="d_")
    fixture.add(dict(zip(leaves, gradients)), prefix="d_")
    if padding:
        fixture.add({"lengths": lengths})
    return fixture


def recurrent(attention):
    batch, sources, tokens, vocabulary, channels = 3, 5, 4, 7, 6
    fixture = Fixture(f"recurrent_{attention}")
    model = Recurrent({"attention": {"score": attention, "dropout": 0.0}, "dropout": 0.0},
                      {"token_embedding.weight": (vocabulary, channels)})
    fixture.randomise(model)
    inputs = {"sources": fixture.integers(vocabulary, batch, sources), "lengths": torch.tensor([3, 5, 1]),
              "tokens": fixture.integers(vocabulary, batch, tokens)}
    logits, weights = model.run(**inputs)
    fixture.add_with_gradients(dict(model.named_parameters()), "logits", logits)
    fixture.add(inputs)
    if attention != "none":
        fixture.add({"weights": weights[:, None]})
    return fixture
