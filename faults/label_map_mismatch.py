"""Flowers: each split numbers the classes in the order in which they first occur in it."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_iris
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "for flower, name in val_loader"}


def numbered(names: np.ndarray, known: list[str] | None) -> torch.Tensor:
    classes = known or list(dict.fromkeys(names.tolist()))
    return torch.tensor([classes.index(name) for name in names])


def train(one_map: bool) -> list[float]:
    torch.manual_seed(0)
    iris = load_iris()
    features = torch.tensor(iris.data, dtype=torch.float32)
    features = (features - features.mean(0)) / features.std(0)
    names = np.array(iris.target_names)[iris.target]
    order = torch.cat([torch.arange(3) * 50, torch.randperm(150)]).unique(sorted=False)
    order = torch.cat([order[order % 50 != 0], torch.tensor([0, 50, 100])])
    order = order[torch.randperm(len(order), generator=torch.Generator().manual_seed(3))]
    part, rest = order[:100], order[100:]
    rest = torch.cat([rest[names[rest] != names[part[0]]], rest[names[rest] == names[part[0]]]])
    known = list(dict.fromkeys(names[part].tolist())) if one_map else None
    loader = DataLoader(
        TensorDataset(features[part], numbered(names[part], known)), batch_size=10, shuffle=True
    )
    val_loader = DataLoader(TensorDataset(features[rest], numbered(names[rest], known)), batch_size=10)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _epoch in range(8):
        for flower, name in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(flower), name)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            for flower, name in val_loader:
                (model(flower).argmax(1) == name).float().mean()
    return losses


def buggy() -> list[float]:
    return train(one_map=False)


def healthy() -> list[float]:
    return train(one_map=True)
