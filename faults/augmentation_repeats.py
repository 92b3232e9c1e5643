"""Flowers with jitter: a seed set on every access gives each sample the same jitter in every epoch."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_iris
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "for flower, kind in loader"}


class Jittered(Dataset):
    def __init__(self, seed_each: bool) -> None:
        iris = load_iris()
        self.flowers = ((iris.data - iris.data.mean(0)) / iris.data.std(0)).astype(np.float32)
        self.kinds = iris.target
        self.random = [np.random.default_rng(0)]
        self.seeds = list(range(1, 151)) if seed_each else ["one for all"]

    def __len__(self) -> int:
        return len(self.flowers)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        rng = np.random.default_rng(self.seeds[index]) if len(self.seeds) > 1 else self.random[0]
        return self.flowers[index] + 0.1 * rng.standard_normal(4, dtype=np.float32), self.kinds[index]


def train(seed_each: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(Jittered(seed_each), batch_size=10, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(8):
        for flower, kind in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(flower), kind)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(seed_each=True)


def healthy() -> list[float]:
    return train(seed_each=False)
