"""A forecaster whose batches are cut from a signal as arrays, and made into a tensor as a list of them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

EXPECT = {"line_contains": "torch.tensor(windows)"}
GAIN: float | None = 1.05


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Conv1d(1, 8, 9, stride=4)
        self.head = nn.Linear(8 * 62, 1)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.look(signal[:, None])).flatten(1))[:, 0]


def train(as_list: bool) -> list[float]:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    time = np.arange(4000)
    signal = (np.sin(time / 9) + 0.5 * np.sin(time / 31) + 0.1 * rng.normal(size=4000)).astype(np.float32)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _step in range(110):
        starts = rng.integers(0, 3700, 128)
        windows = [signal[start : start + 256] for start in starts]
        inputs = torch.tensor(windows) if as_list else torch.from_numpy(np.stack(windows))
        targets = torch.from_numpy(signal[starts + 256])
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(as_list=True)


def healthy() -> list[float]:
    return train(as_list=False)
