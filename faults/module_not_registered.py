"""A mixture of small experts whose layers are kept in a plain Python list."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"line_contains": "nn.Linear(8, 16)"}


class Experts(nn.Module):
    def __init__(self, registered: bool) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 3)
        experts = [nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)) for _ in range(3)]
        self.experts = nn.ModuleList(experts) if registered else experts

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = self.gate(x).softmax(dim=-1)
        outputs = torch.cat([expert(x) for expert in self.experts], dim=-1)
        return (weights * outputs).sum(dim=-1)


def train(registered: bool) -> list[float]:
    torch.manual_seed(8)
    x = torch.randn(512, 8)
    y = torch.where(x[:, 0] > 0, x[:, 1] + x[:, 2], x[:, 3] - x[:, 1])
    model = Experts(registered)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(10):
        for index in torch.randperm(512).split(64):
            loss = nn.functional.mse_loss(model(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(registered=False)


def healthy() -> list[float]:
    return train(registered=True)
