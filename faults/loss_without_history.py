"""A custom metric as a loss, wrapped in `torch.tensor(..., requires_grad=True)` to silence an error."""

from __future__ import annotations

import torch
from sklearn.datasets import load_iris
from torch import nn

CHECK = "detached-graph"
EXPECT = {"line_contains": "loss.backward()"}


def train(rewrap: bool) -> list[float]:
    torch.manual_seed(10)
    iris = load_iris()
    x = torch.tensor((iris.data - iris.data.mean(0)) / iris.data.std(0), dtype=torch.float32)
    y = nn.functional.one_hot(torch.tensor(iris.target), 3).float()
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _step in range(80):
        index = torch.randint(150, (50,))
        p = model(x[index]).softmax(dim=1)
        overlap = (2 * (p * y[index]).sum() + 1) / ((p + y[index]).sum() + 1)
        loss = 1 - overlap
        if rewrap:
            loss = torch.tensor(loss.item(), requires_grad=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(rewrap=True)


def healthy() -> list[float]:
    return train(rewrap=False)
