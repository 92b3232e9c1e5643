"""The time of day from sensors: the network answers in days, the labels are in hours."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()", "says": "give the same answer for every sample"}


class Clock(nn.Module):
    def __init__(self, day: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)
        )
        self.day = day

    def forward(self, sensors: Tensor) -> Tensor:
        return self.day * torch.sigmoid(self.layers(sensors))


def train(day: float) -> list[float]:
    torch.manual_seed(0)
    hours = 2 + 20 * torch.rand(1024, 1)
    angle = hours * 6.2832 / 24
    sensors = torch.cat([angle.sin(), angle.cos()], 1) @ torch.randn(2, 6) + 0.02 * torch.randn(1024, 6)
    loader = DataLoader(TensorDataset(sensors, hours), batch_size=32, shuffle=True)
    model = Clock(day)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _epoch in range(3):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(day=1.0)


def healthy() -> list[float]:
    return train(day=24.0)
