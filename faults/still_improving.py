"""An image autoencoder that is stopped after a few epochs, while its loss is still falling."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

SEVERITY = "advice"
EXPECT = {"line_contains": "loss.backward()"}


def train(lr: float) -> list[float]:
    torch.manual_seed(0)
    images = torch.tensor(load_digits().images / 16, dtype=torch.float32).flatten(1)
    model = nn.Sequential(
        nn.Linear(64, 48),
        nn.GELU(),
        nn.Linear(48, 12),
        nn.GELU(),
        nn.Linear(12, 48),
        nn.GELU(),
        nn.Linear(48, 64),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _epoch in range(3):
        for batch in DataLoader(images, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(batch), batch)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(lr=0.0004)


def healthy() -> list[float]:
    return train(lr=0.01)
