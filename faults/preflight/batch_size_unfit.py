"""Returns of a market, mostly noise, learned from four days at a time."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()"}
SEVERITY = "advice"


def train(size: int) -> list[float]:
    torch.manual_seed(0)
    signals = torch.randn(4096, 8)
    returns = 0.6 * signals[:, :1] + 0.3 * signals[:, 1:2] + torch.randn(4096, 1)
    loader = DataLoader(TensorDataset(signals, returns), batch_size=size, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _epoch in range(2):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(size=4)


def healthy() -> list[float]:
    return train(size=256)
