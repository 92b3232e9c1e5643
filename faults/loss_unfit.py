"""Digits with a squared error on the class index, as if a nine were more than a four."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "criterion("}


class Reader(nn.Module):
    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1))
        self.out = nn.Linear(64, outputs)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.out(self.hidden(image))


def train(squared: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=64, shuffle=True)
    model = Reader(1 if squared else 10)
    criterion = nn.MSELoss() if squared else nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(4):
        for image, label in loader:
            output = model(image)
            loss = criterion(output, label.float().unsqueeze(1) if squared else label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(squared=True)


def healthy() -> list[float]:
    return train(squared=False)
