"""A transformer encoder on sequences: a schedule in epochs is stepped after every batch."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "scheduler.step()"}


class CountsLetters(nn.Module):
    """Which of four symbols is the most frequent one?"""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 16)
        self.encoder = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.out = nn.Linear(16, 4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(self.encoder(self.embed(tokens)).mean(dim=1))


def train(per_batch: bool) -> list[float]:
    torch.manual_seed(15)
    tokens = torch.randint(4, (640, 9))
    label = nn.functional.one_hot(tokens, 4).sum(1).argmax(1)
    loader = DataLoader(TensorDataset(tokens, label), batch_size=64, shuffle=True)
    model = CountsLetters()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.1)
    losses = []
    for _epoch in range(10):
        for batch, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            if per_batch:
                scheduler.step()
            losses.append(loss.item())
        if not per_batch:
            scheduler.step()
    return losses


def buggy() -> list[float]:
    return train(per_batch=True)


def healthy() -> list[float]:
    return train(per_batch=False)
