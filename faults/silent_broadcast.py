"""Diabetes regression: predictions (N, 1) minus targets (N,) make a matrix, and its mean is the loss."""

from __future__ import annotations

import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "criterion(prediction, target)"}


class Regressor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return self.net(features)


def train(squeeze: bool) -> list[float]:
    torch.manual_seed(0)
    diabetes = load_diabetes()
    features = torch.tensor(StandardScaler().fit_transform(diabetes.data), dtype=torch.float32)
    targets = torch.tensor(diabetes.target, dtype=torch.float32)
    targets = (targets - targets.mean()) / targets.std()
    loader = DataLoader(TensorDataset(features, targets), batch_size=32, shuffle=True)
    model = Regressor()
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(10):
        for batch, target in loader:
            prediction = model(batch)
            if squeeze:
                prediction = prediction.squeeze(1)
            loss = criterion(prediction, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(squeeze=False)


def healthy() -> list[float]:
    return train(squeeze=True)
