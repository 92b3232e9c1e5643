"""Power from the readings of a turbine: once in a while a sensor reports in the wrong unit."""

from __future__ import annotations

import torch
from torch import nn

SEVERITY = "advice"
EXPECT = {"line_contains": "loss.backward()"}


def readings(count: int, wrong_unit: float) -> tuple[torch.Tensor, torch.Tensor]:
    values = torch.randn(count, 8)
    power = values[:, :4].sum(1, keepdim=True) / 2 + 0.1 * torch.randn(count, 1)
    reported = values.clone()
    reported[torch.rand(count) < 0.0015] *= wrong_unit
    return reported, power


def train(wrong_unit: float) -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _step in range(180):
        reported, power = readings(40, wrong_unit)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(reported), power)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(wrong_unit=30.0)


def healthy() -> list[float]:
    return train(wrong_unit=1.0)
