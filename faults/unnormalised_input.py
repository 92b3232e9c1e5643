"""Raw breast-cancer measurements, from a thousandth to four thousand, go straight into a network."""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"module": "0"}


def train(normalise: bool) -> list[float]:
    torch.manual_seed(0)
    cancer = load_breast_cancer()
    features = torch.tensor(cancer.data, dtype=torch.float32)
    if normalise:
        features = (features - features.mean(dim=0)) / features.std(dim=0)
    labels = torch.tensor(cancer.target, dtype=torch.float32)
    loader = DataLoader(TensorDataset(features, labels), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    losses = []
    for _epoch in range(8):
        for batch, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch).squeeze(1), label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(normalise=False)


def healthy() -> list[float]:
    return train(normalise=True)
