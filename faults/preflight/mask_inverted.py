"""Ratings of short reviews: words are averaged with a mask that marks the padding."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

PAD = 0
EXPECT = {"line_contains": "einsum"}


class Rating(nn.Module):
    def __init__(self, inverted: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 24, padding_idx=PAD)
        self.mix = nn.Sequential(nn.Linear(24, 24), nn.Tanh())
        self.head = nn.Linear(24, 1)
        self.inverted = inverted

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        weights = (words == PAD if self.inverted else words != PAD).float()
        weights = weights / weights.sum(1, keepdim=True).clamp(min=1)
        mean = torch.einsum("bt,bth->bh", weights, self.mix(self.words(words)))
        return self.head(mean).squeeze(1)


def reviews(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Words each have a mood; the rating is their mean."""
    mood = torch.randn(50)
    words = torch.randint(1, 50, (count, 12))
    lengths = torch.randint(5, 12, (count, 1))
    words = torch.where(torch.arange(12) < lengths, words, PAD)
    seen = (words != PAD).float()
    return words, (mood[words] * seen).sum(1) / seen.sum(1) * 2


def train(inverted: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*reviews(1024)), batch_size=32, shuffle=True)
    model = Rating(inverted)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(5):
        for words, rating in loader:
            loss = nn.functional.mse_loss(model(words), rating)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(inverted=True)


def healthy() -> list[float]:
    return train(inverted=False)
