"""Machine readings from a slow disk, with no worker that loads the next ones during training."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "DataLoader("}
GAIN: float | None = 1.1


class Readings(Dataset[Any]):
    def __init__(self) -> None:
        self.signals = torch.randn(480, 1, 512)
        self.wear = self.signals.abs().mean((1, 2))

    def __len__(self) -> int:
        return len(self.wear)

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.002)  # the disk
        return self.signals[index], self.wear[index]


class Wear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Sequential(nn.Conv1d(1, 32, 9), nn.ReLU(), nn.Conv1d(32, 32, 9), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        return self.head(self.look(signals).mean(2))[:, 0]


def train(workers: int) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(
        Readings(), batch_size=16, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    model = Wear()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _epoch in range(3):
        for signals, wear in loader:
            loss = nn.functional.mse_loss(model(signals), wear)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(workers=0)


def healthy() -> list[float]:
    return train(workers=4)
