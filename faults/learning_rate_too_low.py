"""Handwritten digits with plain SGD, at a learning rate that would suit fine-tuning with Adam."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

EXPECT = {"line_contains": "optimizer.step()"}


def train(lr: float) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for _epoch in range(3):
        for index in torch.randperm(len(images)).split(48):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[index]), labels[index])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(lr=2e-5)


def healthy() -> list[float]:
    return train(lr=0.05)
