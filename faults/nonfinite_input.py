"""Regression on sensor logs: some sensors were silent at times, and their readings are NaN."""

from __future__ import annotations

import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "for row, target in loader"}


def train(fill: bool) -> list[float]:
    torch.manual_seed(0)
    readings, yields = make_friedman1(480, 10, noise=0.5, random_state=0)
    rows = torch.tensor(readings, dtype=torch.float32) * 3.46 - 1.73
    targets = torch.tensor(yields, dtype=torch.float32).unsqueeze(1)
    targets = (targets - targets.mean()) / targets.std()
    rows[torch.rand(rows.shape) < 0.002] = float("nan")  # a silent sensor
    if fill:
        rows = torch.nan_to_num(rows, nan=0.0)
    loader = DataLoader(TensorDataset(rows, targets), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
    losses = []
    for _epoch in range(6):
        for row, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(row), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(fill=False)


def healthy() -> list[float]:
    return train(fill=True)
