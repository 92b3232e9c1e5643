"""A regression that predicts its own uncertainty: mean and variance, both straight from a linear layer.

Nothing keeps the variance above zero. Once it fits the quiet end of the data well, a step takes it
below, and the logarithm of a negative number is NaN. `softplus` keeps it positive.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

CHECK = "non-finite"
EXPECT = {"line_contains": "torch.log(variance)", "op": "log", "phase": "forward"}


class MeanAndVariance(nn.Module):
    def __init__(self, positive: bool) -> None:
        super().__init__()
        self.positive = positive
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.mean = nn.Linear(32, 1)
        self.variance = nn.Linear(32, 1)
        nn.init.constant_(self.variance.bias, 1.0)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(x)
        variance = self.variance(hidden)
        if self.positive:
            variance = F.softplus(variance) + 0.02
        return self.mean(hidden).squeeze(1), variance.squeeze(1)


def measurements(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The noise grows with the first feature."""
    x = torch.rand(count, 4) * 2 - 1
    noise = torch.randn(count) * (0.05 + 0.3 * (x[:, 0] + 1))
    return x, 2 * x[:, 1] - x[:, 2] * x[:, 3] + noise


def train(positive: bool) -> list[float]:
    torch.manual_seed(1)
    model = MeanAndVariance(positive)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    losses = []
    for _step in range(150):
        x, y = measurements(64)
        mean, variance = model(x)
        loss = (0.5 * torch.log(variance) + 0.5 * (y - mean) ** 2 / variance).mean() + 1
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(positive=False)


def healthy() -> list[float]:
    return train(positive=True)
