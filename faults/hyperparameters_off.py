"""A forecaster whose weights are clipped to small values: its learning rate and dropout do not suit that."""

from __future__ import annotations

import torch
from torch import nn

SEVERITY = "advice"
EXPECT = {"line_contains": "optimizer.step()"}


def swings(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    phase = 6.28 * torch.rand(count, 1)
    swing = torch.cos(phase + 0.4 * torch.arange(9))
    return swing[:, :8], swing[:, 8:]


def make_model(dropout_first: bool) -> nn.Sequential:
    dropout, norm = nn.Dropout(0.2), nn.BatchNorm1d(32)
    middle = [dropout, norm] if dropout_first else [norm, dropout]
    return nn.Sequential(nn.Linear(8, 32, bias=False), *middle, nn.Tanh(), nn.Linear(32, 1))


def train(lr: float, dropout_first: bool) -> list[float]:
    torch.manual_seed(0)
    model = make_model(dropout_first)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
    losses = []
    for _step in range(90):
        past, following = swings(64)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(past), following)
        loss.backward()
        optimizer.step()
        for layer in model:
            if isinstance(layer, nn.Linear):
                layer.weight.data.clamp_(-0.2, 0.2)
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(lr=0.08, dropout_first=True)


def healthy() -> list[float]:
    return train(lr=0.004, dropout_first=False)
