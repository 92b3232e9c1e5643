"""Digits, some of which a second annotator labelled again and often got wrong."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "DataLoader(", "says": "occur twice, with different labels"}
ALSO = ("duplicate-samples",)  # which they are


def train(again: int) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.data / 8 - 1, dtype=torch.float32)
    y = torch.tensor(digits.target)
    x, y = torch.cat([x, x[:again]]), torch.cat([y, (y[:again] + (torch.arange(again) % 2)) % 10])
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for features, label in loader:
        loss = nn.functional.cross_entropy(model(features), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(again=60)


def healthy() -> list[float]:
    return train(again=0)
