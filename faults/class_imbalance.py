"""Fraud detection: three payments in a hundred are fraud, and the loss gives all payments the same weight."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"line_contains": "criterion(model(payment)"}
FRAUD = 0.03


def payments(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Frauds differ a little, in two of eight features."""
    fraud = (torch.rand(count, 1) < FRAUD).float()
    features = torch.randn(count, 8)
    features[:, :2] += 1.1 * fraud
    return features, fraud


def train(weigh: bool) -> list[float]:
    torch.manual_seed(0)
    features, fraud = payments(4000)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    weight = torch.tensor((1 - FRAUD) / FRAUD) if weigh else None
    criterion = nn.BCEWithLogitsLoss(pos_weight=weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _step in range(150):
        drawn = torch.randint(0, len(features), (64,))
        payment, label = features[drawn], fraud[drawn]
        optimizer.zero_grad()
        loss = criterion(model(payment), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(weigh=False)


def healthy() -> list[float]:
    return train(weigh=True)
