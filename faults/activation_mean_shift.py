"""A text model whose hidden biases start at twelve: the words hardly change the outputs of that layer."""

from __future__ import annotations

import torch
from torch import nn

SEVERITY = "advice"
EXPECT = {"module": "mix"}


class Sentiment(nn.Module):
    def __init__(self, bias: float) -> None:
        super().__init__()
        self.words = nn.Embedding(120, 24)
        self.mix = nn.Linear(24, 24)
        self.out = nn.Linear(24, 2)
        nn.init.constant_(self.mix.bias, bias)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(nn.functional.silu(self.mix(self.words(tokens).mean(1))))


def reviews(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Good ones use more of the first half of the words."""
    mood = torch.randint(0, 2, (count,))
    tokens = torch.randint(0, 60, (count, 10)) + 60 * (torch.rand(count, 10) < 0.2 + 0.6 * mood[:, None])
    return tokens, mood


def train(bias: float) -> list[float]:
    torch.manual_seed(0)
    model = Sentiment(bias)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.004)
    losses = []
    for _step in range(80):
        tokens, mood = reviews(32)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens), mood)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(bias=12.0)


def healthy() -> list[float]:
    return train(bias=0.0)
