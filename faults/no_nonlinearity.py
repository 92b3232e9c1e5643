"""Regression on the Friedman function with a network whose activation functions were forgotten.

What is left is a linear regression with three weight matrices.
"""

from __future__ import annotations

import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"module": "hidden", "line_contains": "self.hidden = nn.Linear(10, 64)"}


class Regressor(nn.Module):
    def __init__(self, activate: bool) -> None:
        super().__init__()
        self.hidden = nn.Linear(10, 64)
        self.drop = nn.Dropout(0.05)
        self.deeper = nn.Linear(64, 64)
        self.out = nn.Linear(64, 1)
        self.activate = torch.relu if activate else torch.nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.drop(self.activate(self.hidden(x)))
        x = self.activate(self.deeper(x))
        return self.out(x).squeeze(1)


def train(activate: bool) -> list[float]:
    torch.manual_seed(0)
    x, y = make_friedman1(400, noise=0.3, random_state=0)
    features = torch.tensor(2 * x - 1, dtype=torch.float32)
    target = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
    loader = DataLoader(TensorDataset(features, target), batch_size=50, shuffle=True)
    model = Regressor(activate)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(12):
        for batch, wanted in loader:
            optimizer.zero_grad()
            loss = mse_loss(model(batch), wanted)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(activate=False)


def healthy() -> list[float]:
    return train(activate=True)
