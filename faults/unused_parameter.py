"""A residual network on digits: the second layer of the block is created, but `forward` skips it."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

EXPECT = {"module": "fc2"}


class Block(nn.Module):
    def __init__(self, both: bool) -> None:
        super().__init__()
        self.both = both
        self.fc1 = nn.Linear(32, 32)
        self.fc2 = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.fc1(x))
        if self.both:
            inner = torch.relu(self.fc2(inner))
        return x + inner


def train(both: bool) -> list[float]:
    torch.manual_seed(11)
    digits = load_digits()
    images = torch.tensor(digits.data / 8 - 1, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 32), Block(both), nn.Linear(32, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(3):
        for index in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images[index]), labels[index])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(both=False)


def healthy() -> list[float]:
    return train(both=True)
