"""A wide network on a hundred noisy samples, trained far beyond its best validation loss."""

from __future__ import annotations

import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn

EXPECT = {"line_contains": "valid = criterion(model(x_valid), y_valid)"}


def data() -> list[torch.Tensor]:
    x, y = make_classification(
        800, 40, n_informative=6, n_redundant=0, flip_y=0.1, class_sep=1.5, random_state=1
    )
    parts = train_test_split(x, y, train_size=100, random_state=0)
    return [torch.tensor(p, dtype=torch.float32 if p.dtype == float else torch.long) for p in parts]


def train(epochs: int) -> list[float]:
    torch.manual_seed(0)
    x, x_valid, y, y_valid = data()
    model = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    losses = []
    for _epoch in range(epochs):
        model.train()
        for index in torch.randperm(len(x)).split(10):
            optimizer.zero_grad()
            loss = criterion(model(x[index]), y[index])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            valid = criterion(model(x_valid), y_valid)
        if not torch.isfinite(valid):
            break
    return losses


def buggy() -> list[float]:
    return train(epochs=15)


def healthy() -> list[float]:
    return train(epochs=4)
