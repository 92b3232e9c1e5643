"""Two sizes of a network are compared; the first is trained without clearing its gradients.

The second training is correct and three times as long, so most steps of the run are correct.
"""

from __future__ import annotations

import torch
from torch import nn

CHECK = "missing-zero-grad"
EXPECT = {"line_contains": "optimizer.step()", "says": "never cleared"}


def fit(width: int, steps: int, zero_grad: bool) -> list[float]:
    x = torch.randn(600, 8)
    y = x[:, :3].argmax(1)
    model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, steps // 2)
    losses = []
    for _step in range(steps):
        rows = torch.randint(600, (32,))
        if zero_grad:
            optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def compare(zero_grad: bool) -> list[float]:
    torch.manual_seed(0)
    return [*fit(16, 60, zero_grad), *fit(32, 180, zero_grad=True)]


def buggy() -> list[float]:
    return compare(zero_grad=False)


def healthy() -> list[float]:
    return compare(zero_grad=True)
