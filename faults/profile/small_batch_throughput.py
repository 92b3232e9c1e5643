"""Wine, two bottles at a time."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"says": "batches of 2 "}
GAIN: float | None = 1.3


def train(size: int) -> list[float]:
    torch.manual_seed(0)
    features = torch.randn(4096, 32)
    labels = (features[:, :8] * torch.linspace(-1, 1, 8)).sum(1) + features[:, 9].tanh()
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(1 if size < 64 else 40):
        for chosen in torch.randperm(len(features)).split(size)[:300]:
            loss = nn.functional.mse_loss(model(features[chosen])[:, 0], labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(size=2)


def healthy() -> list[float]:
    return train(size=512)
