"""A small CNN on digits: the count of right answers is never reset, and accuracy passes 100%."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import clew

EXPECT = {"line_contains": "clew.log("}


class SmallCnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, padding=1)
        self.norm = nn.BatchNorm2d(12)
        self.out = nn.Linear(12 * 4 * 4, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.out(F.max_pool2d(F.relu(self.norm(self.conv(image))), 2).flatten(1))


def train(reset: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    dataset = TensorDataset(images, torch.tensor(digits.target))
    loader = DataLoader(dataset, batch_size=64, shuffle=True)
    model = SmallCnn()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses, correct = [], 0
    for _epoch in range(4):
        if reset:
            correct = 0
        for image, label in loader:
            scores = model(image)
            loss = F.cross_entropy(scores, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            correct += int((scores.argmax(1) == label).sum())
        clew.log({"acc": 100 * correct / len(dataset)})
    return losses


def buggy() -> list[float]:
    return train(reset=False)


def healthy() -> list[float]:
    return train(reset=True)
