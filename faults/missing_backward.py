"""A regression of disease progression: the training loop has everything but `loss.backward()`."""

from __future__ import annotations

import torch
from sklearn.datasets import load_diabetes
from torch import nn

EXPECT = {"line_contains": "optimizer.step()"}


def train(backward: bool) -> list[float]:
    torch.manual_seed(1)
    data = load_diabetes()
    x = torch.tensor(data.data * 20, dtype=torch.float32)
    y = torch.tensor((data.target - data.target.mean()) / data.target.std(), dtype=torch.float32)
    model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    criterion = nn.MSELoss()
    losses = []
    for _epoch in range(15):
        for index in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = criterion(model(x[index]).squeeze(1), y[index])
            if backward:
                loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(backward=False)


def healthy() -> list[float]:
    return train(backward=True)
