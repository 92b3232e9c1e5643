"""Digits, with a table of right and wrong answers that is updated one sample at a time."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

EXPECT = {"line_contains": ".item()"}
GAIN: float | None = 1.05


def train(one_by_one: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    table = torch.zeros(10, 10, dtype=torch.long)
    losses = []
    for _step in range(90):
        chosen = torch.randint(len(images), (96,))
        scores = model(images[chosen])
        loss = nn.functional.cross_entropy(scores, labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        answers = scores.argmax(1)
        if one_by_one:
            for right, answer in zip(labels[chosen], answers, strict=True):
                table[right.item(), answer.item()] += 1
        else:
            table += torch.bincount(labels[chosen] * 10 + answers, minlength=100).view(10, 10)
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(one_by_one=True)


def healthy() -> list[float]:
    return train(one_by_one=False)
