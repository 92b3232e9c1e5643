"""A classifier of sets of three hundred readings that sums each set where it should average it."""

from __future__ import annotations

import torch
from torch import nn

SEVERITY = "advice"
EXPECT = {"module": "mix"}


class DeepSet(nn.Module):
    def __init__(self, average: bool) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.mix = nn.Linear(32, 32)
        self.out = nn.Linear(32, 1)
        self.average = average

    def forward(self, readings: torch.Tensor) -> torch.Tensor:
        each = 8 * self.each(readings)
        together = each.mean(1) if self.average else each.sum(1)
        return self.out(5 * nn.functional.normalize(torch.relu(self.mix(together)))).squeeze(1)


def sets(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Those of the second kind scatter more."""
    kind = torch.randint(0, 2, (count,))
    return torch.randn(count, 300, 4) * (1 + 0.3 * kind).view(-1, 1, 1), kind


def train(average: bool) -> list[float]:
    torch.manual_seed(0)
    model = DeepSet(average)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    losses = []
    for _step in range(60):
        readings, kind = sets(24)
        optimizer.zero_grad()
        loss = torch.log1p(torch.exp(-model(readings) * (2 * kind - 1))).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(average=False)


def healthy() -> list[float]:
    return train(average=True)
