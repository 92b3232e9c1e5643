"""A bag-of-words classifier whose dropout gets the probability of keeping a value, not of dropping it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

CHECK = "dropout-misplaced"
EXPECT = {"line_contains": "F.dropout(hidden"}


class Reader(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(200, 64)
        self.body = nn.Linear(64, 32)
        self.topic = nn.Linear(32, 4)
        self.p = p

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = F.relu(self.body(self.words(tokens)))
        return self.topic(F.dropout(hidden, self.p, self.training))


def documents(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Each topic prefers its own fifty words."""
    topic = torch.randint(0, 4, (count,))
    own = topic[:, None] * 50 + torch.randint(0, 50, (count, 12))
    return torch.where(torch.rand(count, 12) < 0.5, own, torch.randint(0, 200, (count, 12))), topic


def train(p: float) -> list[float]:
    torch.manual_seed(0)
    model = Reader(p)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _step in range(80):
        tokens, topic = documents(32)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens), topic)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(p=0.9)


def healthy() -> list[float]:
    return train(p=0.1)
