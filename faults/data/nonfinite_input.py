"""A table of wines in which two measurements are missing, far beyond the first batches."""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "DataLoader(", "says": "2 of 178 samples of loader contain NaN or infinite values"}


class Wines(Dataset[dict[str, torch.Tensor]]):
    def __init__(self, missing: float) -> None:
        wines = load_wine()
        order = torch.randperm(len(wines.target), generator=torch.Generator().manual_seed(0))
        table = torch.tensor((wines.data - wines.data.mean(0)) / wines.data.std(0), dtype=torch.float32)
        self.table, self.kinds = table[order], torch.tensor(wines.target)[order]
        self.table[170, 3] = self.table[174, 9] = missing

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"values": self.table[index], "kind": self.kinds[index]}


def train(missing: float) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(Wines(missing), batch_size=16)
    model = nn.Sequential(nn.Linear(13, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for batch in loader:
        loss = nn.functional.cross_entropy(model(batch["values"]), batch["kind"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(missing=float("nan"))


def healthy() -> list[float]:
    return train(missing=0.0)
