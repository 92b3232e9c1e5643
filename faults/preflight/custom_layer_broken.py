"""A regression with a custom normalisation whose running statistics no checkpoint contains."""

from __future__ import annotations

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"module": "norm", "line_contains": "def forward"}


class RunningNorm(nn.Module):
    """Normalises features by the batch, and by running statistics in evaluation."""

    def __init__(self, width: int, plain: bool) -> None:
        super().__init__()
        if plain:
            self.mean, self.scale = torch.zeros(width), torch.ones(width)
        else:
            self.register_buffer("mean", torch.zeros(width))
            self.register_buffer("scale", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return (x - self.mean) / (self.scale + 1e-3)
        mean, scale = x.mean(0), x.std(0)
        with torch.no_grad():
            self.mean.lerp_(mean, 0.1)
            self.scale.lerp_(scale, 0.1)
        return (x - mean) / (scale + 1e-3)


class Network(nn.Module):
    def __init__(self, plain: bool) -> None:
        super().__init__()
        self.first = nn.Linear(10, 32)
        self.norm = RunningNorm(32, plain)
        self.last = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.norm(self.first(x)))).squeeze(1)


def train(plain: bool) -> list[float]:
    torch.manual_seed(0)
    data = load_diabetes()
    features = torch.tensor(data.data / data.data.std(0), dtype=torch.float32)
    target = torch.tensor((data.target - data.target.mean()) / data.target.std(), dtype=torch.float32)
    loader = DataLoader(TensorDataset(features, target), batch_size=32, shuffle=True)
    model = Network(plain)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(12):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(plain=True)


def healthy() -> list[float]:
    return train(plain=False)
