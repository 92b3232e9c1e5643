"""Bridge loads from sensors: the rule is so clear that thousands of samples show no more than a few."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()"}
SEVERITY = "advice"


def train(size: int, epochs: int) -> list[float]:
    torch.manual_seed(0)
    sensors = torch.randn(32768, 8)
    load = 3 * sensors[:, :1] + sensors[:, 1:2] + 4 + 0.1 * torch.randn(32768, 1)
    loader = DataLoader(TensorDataset(sensors, load), batch_size=size, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _epoch in range(epochs):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(size=4096, epochs=6)


def healthy() -> list[float]:
    return train(size=64, epochs=1)
