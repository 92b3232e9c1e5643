"""A small convolutional classifier of digits whose loop forgets `optimizer.step()`."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()"}


def make_model() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10)
    )


def train(step: bool) -> list[float]:
    torch.manual_seed(3)
    digits = load_digits()
    images = torch.tensor(digits.images / 8 - 1, dtype=torch.float32).unsqueeze(1)
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=64, shuffle=True)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(3):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image), label)
            loss.backward()
            if step:
                optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(step=False)


def healthy() -> list[float]:
    return train(step=True)
