"""Multi-label classification of token sets: the pooled features are detached before the head."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": ".detach()"}


class TagModel(nn.Module):
    def __init__(self, detach: bool) -> None:
        super().__init__()
        self.detach = detach
        self.embed = nn.Embedding(60, 32)
        self.mix = nn.Linear(32, 32)
        self.head = nn.Linear(32, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        pooled = torch.relu(self.mix(self.embed(tokens).mean(dim=1)))
        if self.detach:
            pooled = pooled.detach()
        return self.head(pooled)


def train(detach: bool) -> list[float]:
    torch.manual_seed(9)
    tokens = torch.randint(60, (640, 12))
    counts = nn.functional.one_hot(tokens, 60).sum(1).float()
    tags = (counts @ torch.randn(60, 5) > 0).float()
    loader = DataLoader(TensorDataset(tokens, tags), batch_size=64, shuffle=True)
    model = TagModel(detach)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(10):
        for batch, tag in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(batch), tag)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(detach=True)


def healthy() -> list[float]:
    return train(detach=False)
