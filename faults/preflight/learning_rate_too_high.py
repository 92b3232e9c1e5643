"""Grape varieties by SGD with momentum, at a rate that only plain SGD on a linear model could take."""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "optimizer.step()"}


def train(lr: float) -> list[float]:
    torch.manual_seed(0)
    wine = load_wine()
    features = torch.tensor((wine.data - wine.data.mean(0)) / wine.data.std(0), dtype=torch.float32)
    loader = DataLoader(TensorDataset(features, torch.tensor(wine.target)), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(13, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for _epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(lr=20.0)


def healthy() -> list[float]:
    return train(lr=0.05)
