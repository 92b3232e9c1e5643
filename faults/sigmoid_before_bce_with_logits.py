"""Tags for short texts (several at once): the model ends with a sigmoid, and so does the loss."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "criterion(model(words), tags)"}


def tagged_texts() -> TensorDataset:
    generator = torch.Generator().manual_seed(3)
    meaning = torch.randn(60, 5, generator=generator)
    words = torch.randint(0, 60, (960, 12), generator=generator)
    tags = (meaning[words].mean(1) > 0.1).float()
    return TensorDataset(words, tags)


def train(sigmoid: bool) -> list[float]:
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.EmbeddingBag(60, 24), nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 5)]
    if sigmoid:
        layers.append(nn.Sigmoid())
    model = nn.Sequential(*layers)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(tagged_texts(), batch_size=48, shuffle=True)
    losses = []
    for _epoch in range(5):
        for words, tags in loader:
            optimizer.zero_grad()
            loss = criterion(model(words), tags)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(sigmoid=True)


def healthy() -> list[float]:
    return train(sigmoid=False)
