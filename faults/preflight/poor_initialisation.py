"""A multi-layer network on digits with weights drawn from a normal distribution with std 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "nn.Linear("}


def train(draw: Callable[[torch.Tensor], Any]) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Linear(64, 48),
        nn.ReLU(),
        nn.Linear(48, 48),
        nn.ReLU(),
        nn.Linear(48, 48),
        nn.ReLU(),
        nn.Linear(48, 10),
    )
    for module in model:
        if isinstance(module, nn.Linear):
            draw(module.weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    for _epoch in range(3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(nn.init.normal_)


def healthy() -> list[float]:
    return train(nn.init.kaiming_normal_)
