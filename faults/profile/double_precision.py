"""A wide regression that computes in float64, because its NumPy arrays are float64."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

EXPECT = {"line_contains": "nn.Sequential("}
GAIN: float | None = 1.05


def train(dtype: torch.dtype) -> list[float]:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.normal(size=(2048, 512))).to(dtype)
    targets = features[:, :64].tanh().sum(1, keepdim=True) / 8
    model = nn.Sequential(
        nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)
    )
    model.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    losses = []
    for _step in range(110):
        chosen = torch.randint(len(features), (256,))
        loss = nn.functional.mse_loss(model(features[chosen]), targets[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(torch.float64)


def healthy() -> list[float]:
    return train(torch.float32)
