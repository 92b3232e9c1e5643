"""A square root with a hand-written backward, to save the memory of its input.

The backward divides by the root, which is 0 wherever dropout has put a 0.
"""

from __future__ import annotations

from typing import Any

import torch
from sklearn.datasets import load_diabetes
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": "return gradient / (2 * root)", "phase": "backward"}


class Root(torch.autograd.Function):
    eps = 0.0

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        root = torch.sqrt(x + Root.eps)
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (root,) = ctx.saved_tensors
        return gradient / (2 * root)


class RootNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(10, 32)
        self.second = nn.Linear(32, 32)
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(x))
        x = Root.apply(self.dropout(nn.functional.softplus(self.second(x))))
        return self.out(x).squeeze(1)


def patients() -> tuple[torch.Tensor, torch.Tensor]:
    data = load_diabetes()
    x, y = (torch.tensor(part, dtype=torch.float32) for part in (data.data, data.target))
    return (x - x.mean(dim=0)) / x.std(dim=0), (y - y.mean()) / y.std()


def train(eps: float) -> list[float]:
    torch.manual_seed(0)
    Root.eps = eps
    x, y = patients()
    model = RootNetwork()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _step in range(120):
        pick = torch.randint(len(x), (64,))
        loss = nn.functional.mse_loss(model(x[pick]), y[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(eps=0.0)


def healthy() -> list[float]:
    return train(eps=0.1)
