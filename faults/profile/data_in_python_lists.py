"""Spectra stored as lists of numbers, which are converted to a tensor on every access."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "torch.tensor(self.spectra[index])"}
GAIN: float | None = 1.05


class Spectra(Dataset[Any]):
    def __init__(self, as_lists: bool) -> None:
        draw = random.Random(0)
        self.labels = [index % 2 for index in range(640)]
        self.spectra: Any = [[draw.gauss(0.3 * y, 1.0) for _ in range(2000)] for y in self.labels]
        self.as_lists = as_lists
        if not as_lists:
            self.spectra = torch.tensor(self.spectra)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Any:
        if self.as_lists:
            return torch.tensor(self.spectra[index]), self.labels[index]
        return self.spectra[index], self.labels[index]


def train(as_lists: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(Spectra(as_lists), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(2000, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(6):
        for spectrum, label in loader:
            loss = nn.functional.cross_entropy(model(spectrum), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(as_lists=True)


def healthy() -> list[float]:
    return train(as_lists=False)
