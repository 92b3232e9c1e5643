"""A recurrent network on digits, row by row: training and validation data share a few hundred samples."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

EXPECT = {"line_contains": "for image, label in loader"}


class RowByRow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 32, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(image)[0][:, -1])


def score(model: nn.Module, loader: DataLoader) -> float:
    with torch.no_grad():
        right = [(model(image).argmax(1) == label).float().mean() for image, label in loader]
    return float(torch.stack(right).mean())


def train(val_from: int) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    data = TensorDataset(torch.tensor(digits.images / 16, dtype=torch.float32), torch.tensor(digits.target))
    order = torch.randperm(len(data)).tolist()
    train_loader = DataLoader(Subset(data, order[:1500]), batch_size=64, shuffle=True)
    val_loader = DataLoader(Subset(data, order[val_from:]), batch_size=64)
    model = RowByRow()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(3):
        for image, label in train_loader:
            loss = nn.functional.cross_entropy(model(image), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        score(model, val_loader)
    return losses


def buggy() -> list[float]:
    return train(val_from=1200)


def healthy() -> list[float]:
    return train(val_from=1500)
