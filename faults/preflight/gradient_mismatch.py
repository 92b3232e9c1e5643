"""A regression with a custom activation function whose backward forgets a factor."""

from __future__ import annotations

from typing import Any

import torch
from sklearn.datasets import load_diabetes
from torch import nn

EXPECT = {"line_contains": "def backward"}


class Swish(torch.autograd.Function):
    """x * sigmoid(x), keeping only x for the backward pass."""

    forgetful = False

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        inner = x * gate if Swish.forgetful else x * gate * (1 - gate)
        return gradient * (gate + inner)


swish = Swish.apply


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(10, 32)
        self.second = nn.Linear(32, 32)
        self.last = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = swish(self.first(x))
        return self.last(swish(self.second(x)))


def train(forgetful: bool) -> list[float]:
    torch.manual_seed(0)
    Swish.forgetful = forgetful
    data = load_diabetes()
    features = torch.tensor(data.data / data.data.std(0), dtype=torch.float32)
    target = torch.tensor((data.target - data.target.mean()) / data.target.std(), dtype=torch.float32)
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _step in range(120):
        rows = torch.randint(0, len(features), (64,))
        loss = nn.functional.mse_loss(model(features[rows]).squeeze(1), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(forgetful=True)


def healthy() -> list[float]:
    return train(forgetful=False)
