"""Fine-tuning: the head is replaced after the optimizer was created, which keeps the old one."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

CHECK = "optimizer-stale"
EXPECT = {"line_contains": "torch.optim.SGD("}


class Classifier(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(image))


def train(replace_first: bool) -> list[float]:
    torch.manual_seed(7)
    digits = load_digits()
    images = torch.tensor(digits.data / 8 - 1, dtype=torch.float32)
    odd = torch.tensor(digits.target % 2)
    model = Classifier(classes=10)
    if replace_first:
        model.head = nn.Linear(32, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if not replace_first:
        model.head = nn.Linear(32, 2)
    losses = []
    for _epoch in range(3):
        for index in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[index]), odd[index])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(replace_first=False)


def healthy() -> list[float]:
    return train(replace_first=True)
