"""LBFGS calls a closure many times for each step."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_iris
from torch import nn

torch.manual_seed(8)
iris = load_iris()
features = torch.tensor(iris.data, dtype=torch.float32)
features = (features - features.mean(0)) / features.std(0)
labels = torch.tensor(iris.target)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")

losses = []


def closure() -> torch.Tensor:
    optimizer.zero_grad()
    penalty = sum((p**2).sum() for p in model.parameters())
    loss = nn.functional.cross_entropy(model(features), labels) + 1e-3 * penalty
    loss.backward()
    return loss


for _step in range(25):
    losses.append(optimizer.step(closure).item())

fingerprint(model, losses=losses)
