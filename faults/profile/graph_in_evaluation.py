"""Flowers with a validation after every epoch, which builds the graphs that only training needs."""

from __future__ import annotations

import contextlib

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

EXPECT = {"line_contains": "model(image)", "phase": "eval"}
GAIN: float | None = None


def train(without_gradients: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    parts = random_split(TensorDataset(images, torch.tensor(digits.target)), [600, 1197])
    training, validation = (DataLoader(part, batch_size=64, shuffle=True) for part in parts)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Dropout(0.1), nn.Flatten(), nn.Linear(1024, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _epoch in range(6):
        model.train()
        for image, label in training:
            loss = nn.functional.cross_entropy(model(image), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        right = 0
        with torch.no_grad() if without_gradients else contextlib.nullcontext():
            for image, label in validation:
                right += int((model(image).argmax(1) == label).sum())
    return losses


def buggy() -> list[float]:
    return train(without_gradients=False)


def healthy() -> list[float]:
    return train(without_gradients=True)
