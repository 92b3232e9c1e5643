"""A forecaster of a noisy sine: the scheduler is stepped at the top of every epoch."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"line_contains": "scheduler.step()"}


def windows() -> tuple[torch.Tensor, torch.Tensor]:
    series = torch.sin(torch.arange(600) * 0.2) + 0.1 * torch.randn(600)
    pieces = series.unfold(0, 17, 1)
    return pieces[:, :16].contiguous(), pieces[:, 16:].contiguous()


def train(scheduler_first: bool) -> list[float]:
    torch.manual_seed(14)
    past, future = windows()
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
    losses = []
    for _epoch in range(6):
        if scheduler_first:
            scheduler.step()
        for index in torch.randperm(len(past)).split(64):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(past[index]), future[index])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if not scheduler_first:
            scheduler.step()
    return losses


def buggy() -> list[float]:
    return train(scheduler_first=True)


def healthy() -> list[float]:
    return train(scheduler_first=False)
