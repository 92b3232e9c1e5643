"""The images are shuffled in every epoch, but the labels keep their order."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

EXPECT = {"line_contains": "model(images["}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.layers(image)


def train(with_labels: bool) -> list[float]:
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    images, labels = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(4):
        order = torch.randperm(len(images))
        images = images[order]
        if with_labels:
            labels = labels[order]
        for start in range(0, len(images), 64):
            loss = nn.functional.cross_entropy(model(images[start : start + 64]), labels[start : start + 64])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(with_labels=False)


def healthy() -> list[float]:
    return train(with_labels=True)
