"""An autoencoder whose losses are kept for a plot: as tensors, each with its autograd graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

EXPECT = {"says": "history", "line_contains": "history.append"}
GAIN: float | None = None


def train(with_graph: bool) -> list[float]:
    torch.manual_seed(0)
    codes = torch.randn(1024, 8)
    data = torch.tanh(codes @ torch.randn(8, 256))
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 8), nn.Linear(8, 512), nn.ReLU())
    head = nn.Linear(512, 256)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
    history: list[Any] = []
    for _step in range(200):
        rows = data[torch.randint(len(data), (128,))]
        loss = nn.functional.mse_loss(head(model(rows)), rows)
        optimizer.zero_grad()
        loss.backward(retain_graph=with_graph)
        optimizer.step()
        history.append(loss if with_graph else loss.item())
    return [float(loss) for loss in history]


def buggy() -> list[float]:
    return train(with_graph=True)


def healthy() -> list[float]:
    return train(with_graph=False)
