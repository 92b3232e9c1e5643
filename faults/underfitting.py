"""A surface of hills fitted by a network with a single hidden unit: it finds the slope and no hill."""

from __future__ import annotations

import torch
from torch import nn

SEVERITY = "advice"
EXPECT = {"line_contains": "loss.backward()"}


def surface(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    place = 2 * torch.rand(count, 2) - 1
    height = 0.6 * place[:, 0] + torch.sin(5 * place[:, 0]) * torch.cos(4 * place[:, 1])
    return place, height.unsqueeze(1)


def train(width: int) -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _step in range(240):
        place, height = surface(64)
        loss = nn.functional.mse_loss(model(place), height)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(width=1)


def healthy() -> list[float]:
    return train(width=48)
