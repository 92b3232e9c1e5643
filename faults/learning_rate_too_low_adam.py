"""A recurrent forecaster: the peak of its schedule has one zero too many after the decimal point."""

from __future__ import annotations

import torch
from torch import nn

CHECK = "learning-rate-too-low"
EXPECT = {"line_contains": "optimizer.step()"}


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, past: torch.Tensor) -> torch.Tensor:
        states, _ = self.cell(past)
        return self.out(states[:, -1])


def waves(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    phase, speed = 6.28 * torch.rand(count, 1), 0.2 + 0.3 * torch.rand(count, 1)
    wave = torch.sin(phase + speed * torch.arange(17)).unsqueeze(-1)
    return wave[:, :16], wave[:, 16]


def train(peak: float) -> list[float]:
    torch.manual_seed(0)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=peak)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, peak, total_steps=90, pct_start=0.2)
    losses = []
    for _step in range(90):
        past, following = waves(32)
        loss = nn.functional.mse_loss(model(past), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(peak=1e-6)


def healthy() -> list[float]:
    return train(peak=1e-2)
