"""A CNN on windows of a signal ends with `nn.Sigmoid()`, and its output goes into cross-entropy."""

from __future__ import annotations

import torch
from torch import nn

CHECK = "output-activation-unfit"
EXPECT = {"line_contains": "criterion(model(window), kind)"}


def windows(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    kind = torch.randint(0, 4, (size,))
    phase = 6.28 * torch.rand(size, 1)
    signal = torch.sin(torch.linspace(0, 6, 32) * (1 + 2 * kind[:, None]) + phase)
    return (signal + 0.3 * torch.randn(size, 32)).unsqueeze(1), kind


def train(sigmoid: bool) -> list[float]:
    torch.manual_seed(0)
    layers: list[nn.Module] = [
        nn.Conv1d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(16, 16, 5, padding=2),
        nn.ReLU(),
        nn.AdaptiveMaxPool1d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
    ]
    if sigmoid:
        layers.append(nn.Sigmoid())
    model = nn.Sequential(*layers)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _step in range(100):
        window, kind = windows(32)
        loss = criterion(model(window), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(sigmoid=True)


def healthy() -> list[float]:
    return train(sigmoid=False)
