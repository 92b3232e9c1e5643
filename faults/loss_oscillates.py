"""Fitting a curve with all points in one batch: the momentum is so high that the loss swings."""

from __future__ import annotations

import torch
from torch import nn

SEVERITY = "advice"
EXPECT = {"line_contains": "optimizer.step()"}


def train(lr: float) -> list[float]:
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 80).unsqueeze(1)
    y = torch.sin(3 * x) + 0.05 * torch.randn(80, 1)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _step in range(150):
        optimizer.zero_grad()
        loss = (model(x) - y).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(lr=0.06)


def healthy() -> list[float]:
    return train(lr=0.003)
