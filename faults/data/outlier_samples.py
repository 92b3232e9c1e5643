"""A table of blood values: where one was not measured, the laboratory wrote -999."""

from __future__ import annotations

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "DataLoader(", "says": "extreme value in column 4: -999"}


def train(placeholder: float) -> list[float]:
    torch.manual_seed(0)
    table = load_diabetes()
    x = torch.tensor(table.data / table.data.std(0), dtype=torch.float32)
    y = torch.tensor((table.target - table.target.mean()) / table.target.std(), dtype=torch.float32)
    x[torch.tensor([57, 203, 388]), 4] = placeholder
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for features, target in loader:
        loss = nn.functional.mse_loss(model(features).squeeze(1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(placeholder=-999.0)


def healthy() -> list[float]:
    return train(placeholder=0.0)  # the mean
