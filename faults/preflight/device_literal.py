"""A transformer on sensor readings: positions are created on the CPU, wherever the model is."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEVERITY = "advice"
EXPECT = {"line_contains": "torch.arange("}


class SensorModel(nn.Module):
    def __init__(self, fixed: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(16, 1)
        self.fixed = fixed

    def forward(self, readings: torch.Tensor) -> torch.Tensor:
        device = "cpu" if self.fixed else readings.device
        place = torch.arange(readings.shape[1], dtype=readings.dtype, device=device)[:, None]
        rates = torch.exp(-math.log(100.0) * torch.arange(8, dtype=readings.dtype, device=device) / 8)
        positions = torch.cat([torch.sin(place * rates), torch.cos(place * rates)], dim=1)
        hidden = self.encoder(self.inner(readings) + positions)
        return self.head(hidden.mean(1)).squeeze(1)


def train(fixed: bool) -> list[float]:
    torch.manual_seed(0)
    readings = torch.randn(512, 12, 3)
    target = readings[:, -3:, 0].mean(1) - readings[:, :3, 1].mean(1)
    loader = DataLoader(TensorDataset(readings, target), batch_size=32, shuffle=True)
    model = SensorModel(fixed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(6):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(fixed=True)


def healthy() -> list[float]:
    return train(fixed=False)
