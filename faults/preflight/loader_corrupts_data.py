"""A regression on standardised measurements; to save memory, the collate function casts them to bytes."""

from __future__ import annotations

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "def collate", "says": "cast to int8"}


class Patients(Dataset):
    def __init__(self) -> None:
        data = load_diabetes(scaled=False)
        measured = (data.data - data.data.mean(0)) / data.data.std(0)
        self.measured = torch.tensor(measured, dtype=torch.float32)
        self.progress = torch.tensor((data.target - data.target.mean()) / data.target.std())

    def __len__(self) -> int:
        return len(self.progress)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, float]:
        return self.measured[index], float(self.progress[index])


def train(as_bytes: bool) -> list[float]:
    torch.manual_seed(0)

    def collate(items: list[tuple[torch.Tensor, float]]) -> tuple[torch.Tensor, torch.Tensor]:
        rows, progress = zip(*items, strict=True)
        measured = torch.stack(rows)
        return measured.to(torch.int8) if as_bytes else measured, torch.tensor(progress)

    loader = DataLoader(Patients(), batch_size=32, shuffle=True, collate_fn=collate)
    model = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(8):
        for rows, progress in loader:
            loss = nn.functional.mse_loss(model(rows.float()).squeeze(1), progress)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(as_bytes=True)


def healthy() -> list[float]:
    return train(as_bytes=False)
