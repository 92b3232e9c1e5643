"""Breast cancer, yes or no: raw scores go into `BCELoss`, and torch raises an error at the first batch."""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "criterion(answer, label)"}


class Diagnosis(nn.Module):
    def __init__(self, sigmoid: bool) -> None:
        super().__init__()
        self.hidden = nn.Linear(30, 32)
        self.drop = nn.Dropout(0.2)
        self.answer = nn.Linear(32, 1)
        self.sigmoid = sigmoid

    def forward(self, cells: torch.Tensor) -> torch.Tensor:
        score = self.answer(self.drop(torch.relu(self.hidden(cells)))).squeeze(1)
        return torch.sigmoid(score) if self.sigmoid else score


def train(sigmoid: bool) -> list[float]:
    torch.manual_seed(0)
    data = load_breast_cancer()
    cells = torch.tensor(StandardScaler().fit_transform(data.data), dtype=torch.float32)
    labels = torch.tensor(data.target, dtype=torch.float32)
    loader = DataLoader(TensorDataset(cells, labels), batch_size=32, shuffle=True)
    model = Diagnosis(sigmoid)
    criterion = nn.BCELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses: list[float] = []
    for _epoch in range(5):
        for batch, label in loader:
            optimizer.zero_grad()
            answer = model(batch)
            loss = criterion(answer, label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    try:
        return train(sigmoid=False)
    except RuntimeError:  # "all elements of input should be between 0 and 1"
        return []


def healthy() -> list[float]:
    return train(sigmoid=True)
