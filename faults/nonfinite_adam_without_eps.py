"""Titles are classified by the mean of their words' vectors, with Adam and `eps=0`.

A word that has not occurred yet has a gradient of exactly zero: its update is 0 / 0. The first
step leaves NaN in the table, and the loss is NaN as soon as a title contains such a word.
"""

from __future__ import annotations

import torch
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": "optimizer"}  # the step that made it, or the line that set eps


class BagOfWords(nn.Module):
    def __init__(self, vocabulary: int = 400, width: int = 16, classes: int = 4) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(vocabulary, width, mode="mean")
        self.out = nn.Linear(width, classes)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.out(self.words(words))


def titles(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    topic = torch.randint(4, (count,))
    return torch.randint(100, (count, 8)) + 100 * topic[:, None], topic


def train(eps: float) -> list[float]:
    torch.manual_seed(0)
    model = BagOfWords()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, eps=eps)
    losses = []
    for _step in range(80):
        words, topic = titles(16)
        loss = nn.functional.cross_entropy(model(words), topic)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(eps=0.0)


def healthy() -> list[float]:
    return train(eps=1e-8)
