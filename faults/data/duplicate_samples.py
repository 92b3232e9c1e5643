"""A CNN on digits from two downloads that overlap: one sample in seven occurs twice."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

EXPECT = {"line_contains": "DataLoader(", "says": "are copies of others"}


def train(overlap: int) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images / 8 - 1, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    first = TensorDataset(images[:1000], labels[:1000])
    second = TensorDataset(images[1000 - overlap :], labels[1000 - overlap :])
    loader = DataLoader(ConcatDataset([first, second]), batch_size=64, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for image, label in loader:
        loss = nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(overlap=300)


def healthy() -> list[float]:
    return train(overlap=0)
