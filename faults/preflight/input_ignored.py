"""Brightness levels of an image go into an embedding; they are cast to integers before they are scaled."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()", "says": "does not depend on its input"}


class Levels(nn.Module):
    def __init__(self, cast_first: bool) -> None:
        super().__init__()
        self.level = nn.Embedding(16, 6)
        self.head = nn.Sequential(nn.Linear(64 * 6, 64), nn.ReLU(), nn.Linear(64, 10))
        self.cast_first = cast_first

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        levels = image.long() * 16 if self.cast_first else (image * 16).long()
        return self.head(self.level(levels).flatten(1))


def train(cast_first: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data / 17, dtype=torch.float32)
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=64, shuffle=True)
    model = Levels(cast_first)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(3):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(cast_first=True)


def healthy() -> list[float]:
    return train(cast_first=False)
