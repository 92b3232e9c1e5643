"""Sixty samples for a network of twenty thousand weights."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEVERITY = "advice"
EXPECT = {"line_contains": "loss.backward()", "says": "more samples would help"}


def train(samples: int) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 10))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(images[:samples], labels[:samples]), batch_size=20, shuffle=True)
    losses: list[float] = []
    while len(losses) < 120:
        for batch, wanted in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch), wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) % 20 == 0:
                with torch.no_grad():
                    valid = criterion(model(images[-400:]), labels[-400:])
                assert torch.isfinite(valid)
    return losses


def buggy() -> list[float]:
    return train(samples=60)


def healthy() -> list[float]:
    return train(samples=1300)
