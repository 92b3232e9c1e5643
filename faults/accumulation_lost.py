"""Gradient accumulation over four batches, with `zero_grad()` left at the top of the batch loop."""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "optimizer.step()"}
ACCUMULATE = 4


def cancer_loader() -> DataLoader[tuple[torch.Tensor, ...]]:
    data = load_breast_cancer()
    x = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
    y = torch.tensor(data.target, dtype=torch.float32)
    return DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, drop_last=True)


def train(clear_every_batch: bool) -> list[float]:
    torch.manual_seed(4)
    loader = cancer_loader()
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    losses = []
    optimizer.zero_grad()
    for _epoch in range(4):
        for number, (x, y) in enumerate(loader, start=1):
            if clear_every_batch:
                optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
            (loss / ACCUMULATE).backward()
            losses.append(loss.item())
            if number % ACCUMULATE == 0:
                optimizer.step()
                if not clear_every_batch:
                    optimizer.zero_grad()
    return losses


def buggy() -> list[float]:
    return train(clear_every_batch=True)


def healthy() -> list[float]:
    return train(clear_every_batch=False)
