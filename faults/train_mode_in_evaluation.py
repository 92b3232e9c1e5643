"""A classifier of wines with dropout and batch normalisation is validated without `.eval()`."""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

EXPECT = {"line_contains": "model(features)"}


def accuracy(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, ...]]) -> float:
    right = total = 0
    with torch.no_grad():
        for features, kind in loader:
            right += int((model(features).argmax(dim=1) == kind).sum())
            total += len(kind)
    return right / total


def train(evaluation_mode: bool) -> list[float]:
    torch.manual_seed(19)
    wine = load_wine()
    x = torch.tensor((wine.data - wine.data.mean(0)) / wine.data.std(0), dtype=torch.float32)
    parts = random_split(TensorDataset(x, torch.tensor(wine.target)), [138, 40])
    training, validation = (DataLoader(part, batch_size=20, shuffle=True, drop_last=True) for part in parts)
    model = nn.Sequential(nn.Linear(13, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _epoch in range(15):
        model.train()
        for features, kind in training:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(features), kind)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if evaluation_mode:
            model.eval()
        accuracy(model, validation)
    return losses


def buggy() -> list[float]:
    return train(evaluation_mode=False)


def healthy() -> list[float]:
    return train(evaluation_mode=True)
