"""A focal loss written as a function, with an exponent below one.

The better the classifier gets, the nearer a probability comes to 1. Once one is exactly 1, the
derivative of (1 - p) ** 0.5 is infinite. No module is involved.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_iris
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": "** gamma", "op": "pow", "phase": "backward"}


def focal_loss(scores: torch.Tensor, label: torch.Tensor, gamma: float) -> torch.Tensor:
    log_p = torch.log_softmax(scores, dim=1).gather(1, label[:, None]).squeeze(1)
    weight = (1 - log_p.exp()) ** gamma
    return (-weight * log_p).mean()


def train(gamma: float) -> list[float]:
    torch.manual_seed(0)
    iris = load_iris()
    x = torch.tensor(iris.data, dtype=torch.float32)
    x = (x - x.mean(dim=0)) / x.std(dim=0)
    label = torch.tensor(iris.target)
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _step in range(150):
        pick = torch.randint(len(x), (32,))
        loss = focal_loss(model(x[pick]), label[pick], gamma)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(gamma=0.5)


def healthy() -> list[float]:
    return train(gamma=2.0)
