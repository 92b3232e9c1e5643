"""Ratings as products of two vectors that start near zero, at a saddle point that plain SGD hardly leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "optimizer.step()"}


class Ratings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.users, self.films = nn.Embedding(40, 8), nn.Embedding(40, 8)
        nn.init.normal_(self.users.weight, std=0.01)
        nn.init.normal_(self.films.weight, std=0.01)

    def forward(self, pairs: Tensor) -> Tensor:
        return (self.users(pairs[:, 0]) * self.films(pairs[:, 1])).sum(1)


def train(make: Callable[[Any], torch.optim.Optimizer]) -> list[float]:
    torch.manual_seed(0)
    users, films = torch.randn(40, 3), torch.randn(40, 3)
    pairs = torch.randint(0, 40, (2048, 2))
    rating = (users[pairs[:, 0]] * films[pairs[:, 1]]).sum(1)
    loader = DataLoader(TensorDataset(pairs, rating), batch_size=64, shuffle=True)
    model = Ratings()
    optimizer = make(model.parameters())
    losses = []
    for _epoch in range(5):
        for pair, wanted in loader:
            loss = nn.functional.mse_loss(model(pair), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(lambda parameters: torch.optim.SGD(parameters, lr=0.1))


def healthy() -> list[float]:
    return train(lambda parameters: torch.optim.Adam(parameters, lr=0.02))
