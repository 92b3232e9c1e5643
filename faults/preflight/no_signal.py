"""Measurements of tumours from one file are joined with the diagnoses of another, row by row."""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()", "says": "labels shuffled"}


def train(joined_by_row: bool) -> list[float]:
    torch.manual_seed(0)
    data = load_breast_cancer()
    measured = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
    diagnosis = torch.tensor(data.target)
    if joined_by_row:
        measured = measured[torch.randperm(len(measured))]
    loader = DataLoader(TensorDataset(measured, diagnosis), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(6):
        for features, label in loader:
            loss = nn.functional.cross_entropy(model(features), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(joined_by_row=True)


def healthy() -> list[float]:
    return train(joined_by_row=False)
