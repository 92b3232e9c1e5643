"""Metric scaling: points in the plane are moved until their distances are those of the wines.

There is no network, only an embedding. The distances of all pairs include those of each point to
itself, and the derivative of a norm at zero is 0 · inf: the loss is finite, every gradient is NaN.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": "squared**0.5", "op": "pow", "phase": "backward"}


def distances(points: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    squared = ((points[pairs[0]] - points[pairs[1]]) ** 2).sum(dim=1)
    return squared**0.5


def wine_distances() -> torch.Tensor:
    wines = torch.tensor(load_wine().data, dtype=torch.float32)[:60]
    return torch.cdist(*[(wines - wines.mean(dim=0)) / wines.std(dim=0)] * 2)


def train(with_itself: bool) -> list[float]:
    torch.manual_seed(0)
    wanted = wine_distances()
    pairs = torch.triu_indices(60, 60, offset=0 if with_itself else 1)
    model = nn.Embedding(60, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _step in range(80):
        points = model(torch.arange(60))
        stress = (distances(points, pairs) - wanted[pairs[0], pairs[1]]) ** 2
        loss = stress.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(with_itself=True)


def healthy() -> list[float]:
    return train(with_itself=False)
