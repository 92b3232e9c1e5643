"""Tumours from measurements that are smoothed again for each sample in each epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "DataLoader("}
GAIN: float | None = 1.1


class Measurements(Dataset[Any]):
    """`each_time`: the smoothing is done whenever a sample is asked for, else once."""

    def __init__(self, each_time: bool) -> None:
        features, labels = load_breast_cancer(return_X_y=True)
        self.features = ((features - features.mean(0)) / features.std(0)).astype(np.float32)
        self.labels = labels
        self.each_time = each_time
        if not each_time:
            self.features = np.stack([smoothed(row) for row in self.features])

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Any:
        row = smoothed(self.features[index]) if self.each_time else self.features[index]
        return torch.from_numpy(row), int(self.labels[index])


def smoothed(row: np.ndarray) -> np.ndarray:
    wide = np.repeat(row, 200)
    for width in (3, 5, 7, 9, 11, 13):
        wide = np.convolve(wide, np.ones(width) / width, mode="same")
    return wide[100::200].astype(np.float32)


def train(each_time: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(Measurements(each_time), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
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
    return train(each_time=True)


def healthy() -> list[float]:
    return train(each_time=False)
