"""Tumours from plain measurements: the learning rate is a hundredth of what this network needs."""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "optimizer.step()"}
SEVERITY = "advice"


def train(lr: float) -> list[float]:
    torch.manual_seed(0)
    data = load_breast_cancer()
    features = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
    labels = torch.tensor(data.target, dtype=torch.float32).unsqueeze(1)
    loader = DataLoader(TensorDataset(features, labels), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for _epoch in range(5):
        for x, y in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(lr=2e-4)


def healthy() -> list[float]:
    return train(lr=0.05)
