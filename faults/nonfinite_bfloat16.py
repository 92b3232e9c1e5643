"""A multi-label classifier under bfloat16 autocast, with the cross-entropy written out by hand.

bfloat16 has eight bits of precision: a probability of 0.999 is rounded to 1, and log(1 - 1) is -inf.
In float32 the same line works up to a probability of 0.99999997.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CHECK = "non-finite"
EXPECT = {"line_contains": "torch.log(1 - p)", "op": "log", "phase": "forward"}


def tagged(count: int = 512) -> TensorDataset:
    features = torch.randn(count, 16)
    return TensorDataset(features, (features @ torch.randn(16, 6) > 1).float())


def binary_cross_entropy(p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()


def train(wide: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(tagged(), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 6))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.004)
    losses = []
    for _epoch in range(10):
        for features, tags in loader:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scores = model(features)
                p = torch.sigmoid(scores.float() if wide else scores)
                loss = binary_cross_entropy(p, tags)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(wide=False)


def healthy() -> list[float]:
    return train(wide=True)
