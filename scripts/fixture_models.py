"""Ten steps of training whole models, for make_fixtures.py."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from fixture_file import IGNORED, Fixture

STEPS = 10
WARMUP = 3


def sinusoidal(time, channels):
    """pe[t, 2i] = sin(t / 10000^(2i/C)), pe[t, 2i+1] = cos(same): Vaswani et al. 2017, section 3.5."""
    angle = torch.arange(time)[:, None] / 10000 ** (torch.arange(0, channels, 2) / channels)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).view(time, channels)


class Model(nn.Module):
    """pre: GELU, sinusoidal positions, linear output; post: ReLU, learned positions, two-layer output net."""

    V, T, C, H, F = 7, 6, 12, 3, 20

    def __init__(self, norm):
        super().__init__()
        self.token_embedding = nn.Embedding(self.V, self.C)
        pre = norm == "pre"
        if pre:
            self.output = nn.Linear(self.C, self.V)
        else:
            self.position_embedding = nn.Embedding(self.T, self.C)
            self.output = nn.Sequential(nn.Linear(self.C, 8), nn.LayerNorm(8), nn.ReLU(),
                                        nn.Linear(8, self.V))
        layer = nn.TransformerEncoderLayer(self.C, self.H, self.F, dropout=0.0, norm_first=pre,
                                           activation="gelu" if pre else "relu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2 if pre else 1, nn.LayerNorm(self.C) if pre else None,
                                             enable_nested_tensor=False)
        self.pre = pre

    def forward(self, tokens):
        positions = sinusoidal(self.T, self.C) if self.pre else self.position_embedding.weight
        return self.output(self.encoder(self.token_embedding(tokens) + positions))


def lr_factor(t):
    return 0.5 * (1 + math.cos(math.pi * t / STEPS)) * min(1.0, t / WARMUP)


def training(name, norm, make_optimizer, lr, weight_decay, clip_norm, **settings):
    """Ten steps of a whole model; see README.md for what is stored."""
    fixture = Fixture(name, norm=norm, heads=Model.H, norm_eps=1e-5, lr=lr, weight_decay=weight_decay,
                      clip_norm=clip_norm, warmup=WARMUP, ignored_label=IGNORED, **settings)
    model = Model(norm)
    fixture.randomise(model)
    named = dict(model.named_parameters())
    fixture.add(named, prefix="initial.")
    tokens = fixture.integers(Model.V, STEPS, 4, Model.T)
    labels = fixture.labels(Model.V, STEPS, 4, Model.T)
    optimizer = make_optimizer([
        {"params": [p for p in named.values() if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in named.values() if p.dim() < 2], "weight_decay": 0.0}], lr=lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_factor)

    losses, norms, rates = [], [], []
    for step in range(STEPS):
        logits = model(tokens[step])
        loss = F.cross_entropy(logits.view(-1, Model.V), labels[step].flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            fixture.add({"logits": logits}, prefix="first.")
            fixture.add({key: p.grad for key, p in named.items()}, prefix="first.grad.")
        losses.append(loss.item())
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), clip_norm).item())
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()

    fixture.add({"tokens": tokens, "labels": labels, "losses": torch.tensor(losses),
                 "grad_norms": torch.tensor(norms), "lr": torch.tensor(rates)})
    fixture.add(named, prefix="final.")
    return fixture


def adamw_model():
    beta1, beta2, eps = 0.9, 0.98, 1e-8
    return training("adamw_model", "pre",
                    lambda groups, lr: torch.optim.AdamW(groups, lr, (beta1, beta2), eps),
                    lr=1e-2, weight_decay=0.1, clip_norm=0.5, beta1=beta1, beta2=beta2, eps=eps)


def adam_model():
    beta1, beta2, eps = 0.9, 0.98, 1e-8
    return training("adam_model", "post",
                    lambda groups, lr: torch.optim.Adam(groups, lr, (beta1, beta2), eps),
                    lr=1e-2, weight_decay=0.05, clip_norm=1.0, beta1=beta1, beta2=beta2, eps=eps)


def sgd_model():
    momentum = 0.9
    return training("sgd_model", "post",
                    lambda groups, lr: torch.optim.SGD(groups, lr, momentum),
                    lr=1e-1, weight_decay=0.01, clip_norm=1.0, momentum=momentum)
