"""A forecaster trained by SGD with momentum at ten times the right learning rate: it diverges."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"line_contains": "optimizer.step()"}


def windows(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """24 samples of two superposed sines with noise, and the sample that follows."""
    t = torch.rand(count, 1) * 20 + torch.arange(25) * 0.3
    signal = torch.sin(t) + 0.5 * torch.sin(2.7 * t + 1) + 0.05 * torch.randn(count, 25)
    return signal[:, :24], signal[:, 24:]


def train(lr: float) -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(24, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for _step in range(120):
        past, following = windows(64)
        loss = nn.functional.mse_loss(model(past), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(lr=0.3)


def healthy() -> list[float]:
    return train(lr=0.03)
