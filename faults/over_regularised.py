"""Diabetes progression: a weight decay that was meant as a percentage."""

from __future__ import annotations

import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "torch.optim.Adam"}


def train(weight_decay: float) -> list[float]:
    torch.manual_seed(0)
    diabetes = load_diabetes()
    features = torch.tensor(StandardScaler().fit_transform(diabetes.data), dtype=torch.float32)
    target = torch.tensor((diabetes.target - 152.0) / 77.0, dtype=torch.float32).unsqueeze(1)
    loader = DataLoader(TensorDataset(features, target), batch_size=34, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.ELU(), nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002, weight_decay=weight_decay)
    losses = []
    for _epoch in range(12):
        for batch, wanted in loader:
            loss = nn.functional.mse_loss(model(batch), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(weight_decay=2.0)


def healthy() -> list[float]:
    return train(weight_decay=0.001)
