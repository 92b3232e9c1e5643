"""Wine by its measurements: `LogSoftmax(dim=0)` lets the samples of a batch compete, not the classes."""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "nn.functional.nll_loss("}


def classifier(dim: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(13, 32),
        nn.Tanh(),
        nn.Linear(32, 3),
        nn.LogSoftmax(dim=dim),
    )


def train(dim: int) -> list[float]:
    torch.manual_seed(0)
    wine = load_wine()
    measured = torch.tensor(StandardScaler().fit_transform(wine.data), dtype=torch.float32)
    loader = DataLoader(TensorDataset(measured, torch.tensor(wine.target)), batch_size=24, shuffle=True)
    model = classifier(dim)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _epoch in range(10):
        for batch, kind in loader:
            optimizer.zero_grad()
            loss = nn.functional.nll_loss(model(batch), kind)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(dim=0)


def healthy() -> list[float]:
    return train(dim=1)
