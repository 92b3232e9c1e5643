"""Wine tasting notes, stored grape by grape, are read in that order: the loader does not shuffle."""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "for notes, grape in loader"}


def train(shuffle: bool) -> list[float]:
    torch.manual_seed(0)
    wine = load_wine()
    notes = torch.tensor(wine.data, dtype=torch.float32)
    notes = (notes - notes.mean(0)) / notes.std(0)
    loader = DataLoader(TensorDataset(notes, torch.tensor(wine.target)), batch_size=8, shuffle=shuffle)
    model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for _epoch in range(4):
        for notes, grape in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(notes), grape)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(shuffle=False)


def healthy() -> list[float]:
    return train(shuffle=True)
