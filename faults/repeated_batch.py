"""A bag-of-words classifier that fetches the loader's first batch again in every step."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "next("}


def reviews(count: int, words: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Kind reviews use words below a hundred more often, unkind ones those above."""
    label = torch.randint(0, 2, (count,))
    low = torch.randint(0, 100, (count, words))
    other = torch.rand(count, words) < 0.2 + 0.6 * label.unsqueeze(1)
    return low + 100 * other, label


class Sentiment(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(200, 16)
        self.out = nn.Linear(16, 2)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.out(self.words(text))


def train(anew: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*reviews(640)), batch_size=32)
    model = Sentiment()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    batches = iter(loader)
    for step in range(60):
        if step % len(loader) == 0:
            batches = iter(loader)
        text, label = next(iter(loader)) if anew else next(batches)
        loss = nn.functional.cross_entropy(model(text), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(anew=True)


def healthy() -> list[float]:
    return train(anew=False)
