"""A tagger of sequences whose penalty on changes of tag is added up in Python, token by token."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

EXPECT = {"line_contains": "min(abs(tag"}
GAIN: float | None = 1.05


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.head = nn.Linear(16, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(tokens))


def changes_by_hand(rows: list[list[int]]) -> float:
    """How often a tag follows another one."""
    changes = 0
    for row in rows:
        for tag, following in pairwise(row):
            changes += min(abs(tag - following), 1)
    return changes / len(rows)


def train(by_hand: bool) -> list[float]:
    torch.manual_seed(0)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _step in range(90):
        tokens = torch.randint(50, (384, 24))
        tags = tokens % 5
        scores = model(tokens)
        found = scores.argmax(2)
        if by_hand:
            rate = changes_by_hand(found.tolist())
        else:
            rate = float((found[:, 1:] != found[:, :-1]).sum()) / len(found)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten()) * (1 + 1e-4 * rate)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(by_hand=True)


def healthy() -> list[float]:
    return train(by_hand=False)
