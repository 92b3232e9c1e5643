"""Fine-tuning a linear head with SGD and gradient accumulation: the loss of each batch is not divided."""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": ".backward()"}
ACCUMULATE = 4


def train(divide: bool) -> list[float]:
    torch.manual_seed(5)
    wine = load_wine()
    x = torch.tensor((wine.data - wine.data.mean(0)) / wine.data.std(0), dtype=torch.float32)
    loader = DataLoader(
        TensorDataset(x, torch.tensor(wine.target)), batch_size=8, shuffle=True, drop_last=True
    )
    model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    losses, batch = [], 0
    for _epoch in range(12):
        for features, kind in loader:
            loss = nn.functional.cross_entropy(model(features), kind)
            losses.append(loss.item())
            if divide:
                loss = loss / ACCUMULATE
            loss.backward()
            batch += 1
            if batch % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
    return losses


def buggy() -> list[float]:
    return train(divide=False)


def healthy() -> list[float]:
    return train(divide=True)
