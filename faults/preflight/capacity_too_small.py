"""A convolutional network on digits with a layer of a single unit before its scores."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()"}


def train(width: int) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, width),
        nn.Tanh(),
        nn.Linear(width, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _epoch in range(4):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(width=1)


def healthy() -> list[float]:
    return train(width=32)
