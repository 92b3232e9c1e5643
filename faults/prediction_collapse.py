"""Three classes, with loss weights that favour one a thousandfold: the model predicts nothing else."""

from __future__ import annotations

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "criterion(model(batch), label)"}


def train(weights: list[float]) -> list[float]:
    torch.manual_seed(0)
    x, y = make_classification(960, 12, n_informative=6, n_classes=3, random_state=0)
    features = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    loader = DataLoader(TensorDataset(features, torch.tensor(y)), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(12, 32), nn.LeakyReLU(), nn.Linear(32, 3))
    criterion = nn.CrossEntropyLoss(weight=torch.tensor(weights))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    losses = []
    for _epoch in range(7):
        for batch, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch), label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train([1000.0, 1.0, 1.0])


def healthy() -> list[float]:
    return train([1.5, 1.0, 1.0])
