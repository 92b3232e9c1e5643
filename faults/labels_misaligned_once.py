"""The features were shuffled once, before they were saved, but the labels were not."""

from __future__ import annotations

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CHECK = "labels-misaligned"
EXPECT = {"line_contains": "criterion(model(sample)"}


def train(in_step: bool) -> list[float]:
    torch.manual_seed(0)
    features, labels = make_classification(
        3000, 20, n_informative=8, n_classes=4, class_sep=2.0, random_state=0
    )
    features, labels = torch.tensor(features, dtype=torch.float32) / 2, torch.tensor(labels)
    order = torch.randperm(len(features))
    features = features[order]
    if in_step:
        labels = labels[order]
    loader = DataLoader(TensorDataset(features, labels), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _epoch in range(3):
        for sample, label in loader:
            optimizer.zero_grad()
            loss = criterion(model(sample), label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(in_step=False)


def healthy() -> list[float]:
    return train(in_step=True)
