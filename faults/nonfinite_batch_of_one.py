"""A hand-written batch normalisation, and a dataset whose last batch has a single sample.

The unbiased variance of one value divides by zero: NaN. nn.BatchNorm1d would have raised an error.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CHECK = "non-finite"
EXPECT = {"line_contains": "x.var(dim=0)", "op": "var", "phase": "forward", "module": "norm"}


class BatchNorm(nn.Module):
    mean: torch.Tensor
    spread: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, spread = self.mean, self.spread
        if self.training:
            mean = x.mean(dim=0)
            spread = x.var(dim=0)
            with torch.no_grad():
                self.mean.lerp_(mean, 0.1)
                self.spread.lerp_(spread, 0.1)
        return (x - mean) / torch.sqrt(spread + 1e-5) * self.scale + self.shift


class Tumours(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(30, 32)
        self.norm = BatchNorm(32)
        self.out = nn.Linear(32, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.norm(self.hidden(x))))


def cells() -> TensorDataset:
    data = load_breast_cancer()
    x = torch.tensor(data.data, dtype=torch.float32)
    return TensorDataset((x - x.mean(dim=0)) / x.std(dim=0), torch.tensor(data.target))


def train(drop_last: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(cells(), batch_size=8, shuffle=True, drop_last=drop_last)  # 569 = 71 · 8 + 1
    model = Tumours()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _epoch in range(2):
        for x, label in loader:
            loss = nn.functional.cross_entropy(model(x), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(drop_last=False)


def healthy() -> list[float]:
    return train(drop_last=True)
