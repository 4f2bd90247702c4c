"""Reference values of recurrent nets; see make_fixtures.py."""

import torch
import torch.nn.functional as F
from torch import nn

from fixture_file import Fixture, leaf


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


class Recurrent(nn.Module):
    """A bidirectional GRU reads, a GRU writes; see include/thimble/model/recurrent.h."""

    V, C = 7, 6

    def __init__(self, attention):
        super().__init__()
        self.kind = attention
        self.source_token_embedding = nn.Embedding(self.V, self.C)
        self.token_embedding = nn.Embedding(self.V, self.C)
        encoder = nn.GRU(self.C, self.C // 2, batch_first=True, bidirectional=True)
        self.encoder = nn.ModuleDict({"gru": encoder})
        self.decoder = nn.ModuleDict({
            "gru": nn.GRU(self.C * (2 if attention == "additive" else 1), self.C, batch_first=True),
            "initial": nn.Linear(self.C, self.C), "attention": nn.Module()})
        look = self.decoder["attention"]
        if attention == "additive":
            look.query, look.key = nn.Linear(self.C, self.C), nn.Linear(self.C, self.C)
            look.score_weight = nn.Parameter(torch.empty(1, self.C))
        if attention == "general":
            look.score_weight = nn.Parameter(torch.empty(1, self.C, self.C))
        if attention != "none":
            look.combine = nn.Linear(2 * self.C, self.C)
        self.output = nn.Linear(self.C, self.V)

    def score(self, state, memory):
        """Of one state (B, C) and every position: (B, S)."""
        look = self.decoder["attention"]
        if self.kind == "additive":
            return torch.tanh(look.query(state)[:, None] + look.key(memory)) @ look.score_weight[0]
        query = state @ look.score_weight[0] if self.kind == "general" else state
        return torch.einsum("bc,bsc->bs", query, memory) / (self.C ** 0.5 if self.kind == "scaled_dot" else 1)

    def forward(self, sources, lengths, tokens):
        embedded = nn.utils.rnn.pack_padded_sequence(self.source_token_embedding(sources), lengths,
                                                     batch_first=True, enforce_sorted=False)
        states, last = self.encoder["gru"](embedded)
        memory = nn.utils.rnn.pad_packed_sequence(states, batch_first=True)[0]
        hidden = torch.arange(sources.shape[1]) >= lengths[:, None]
        state = torch.tanh(self.decoder["initial"](last.transpose(0, 1).flatten(1)))
        outputs, weights = [], []

        def look():
            weights.append(F.softmax(self.score(state, memory).masked_fill(hidden, -torch.inf), dim=-1))
            return torch.einsum("bs,bsc->bc", weights[-1], memory)

        for x in self.token_embedding(tokens).unbind(1):
            seen = look() if self.kind == "additive" else None
            x = x if seen is None else torch.cat([x, seen], dim=-1)
            state = self.decoder["gru"](x[:, None], state[None])[1][0]
            if self.kind == "none":
                outputs.append(state)
                continue
            seen = look() if seen is None else seen
            combine = self.decoder["attention"].combine
            outputs.append(torch.tanh(combine(torch.cat([seen, state], dim=-1))))
        logits = self.output(torch.stack(outputs, dim=1))
        return logits, torch.stack(weights, dim=1)[:, None] if weights else None


def recurrent(attention):
    batch, sources, tokens = 3, 5, 4
    fixture = Fixture(f"recurrent_{attention}")
    model = Recurrent(attention)
    fixture.randomise(model)
    inputs = {"sources": fixture.integers(model.V, batch, sources), "lengths": torch.tensor([3, 5, 1]),
              "tokens": fixture.integers(model.V, batch, tokens)}
    logits, weights = model(inputs["sources"], inputs["lengths"], inputs["tokens"])
    fixture.add_with_gradients(dict(model.named_parameters()), "logits", logits)
    fixture.add(inputs)
    if weights is not None:
        fixture.add({"weights": weights})
    return fixture
