"""A linear classifier on two interleaved rings: no straight line tells them apart."""

from __future__ import annotations

import torch
from sklearn.datasets import make_circles
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()"}


def train(radius: bool) -> list[float]:
    torch.manual_seed(0)
    x, y = make_circles(600, noise=0.05, factor=0.4, random_state=0)
    points = torch.tensor(x, dtype=torch.float32)
    if radius:
        points = torch.cat([points, points.square().sum(1, keepdim=True)], dim=1)
    loader = DataLoader(TensorDataset(points, torch.tensor(y)), batch_size=30, shuffle=True)
    model = nn.Linear(points.shape[1], 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    losses = []
    for _epoch in range(6):
        for batch, wanted in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(radius=False)


def healthy() -> list[float]:
    return train(radius=True)
