"""Hand-written attention: scores are neither divided by the root of the width nor shifted.

With a width of 256 some scores pass 88.7, where `exp` overflows float32: inf / inf is NaN.
"""

from __future__ import annotations

import torch
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": "torch.exp(scores)", "op": "exp", "phase": "forward", "module": "attend"}


class Attention(nn.Module):
    def __init__(self, width: int, scaled: bool) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.scale = width**-0.5 if scaled else 1.0
        for layer in (self.query, self.key):
            nn.init.normal_(layer.weight, std=width**-0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).transpose(1, 2) * self.scale
        weights = torch.exp(scores)
        return (weights / weights.sum(dim=-1, keepdim=True)) @ self.value(x)


class Finder(nn.Module):
    """Says whether two tokens of a sequence are the same."""

    def __init__(self, scaled: bool, vocabulary: int = 10, width: int = 256) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.attend = Attention(width, scaled)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        return self.out(self.norm(x + self.attend(x)).mean(dim=1))


def train(scaled: bool) -> list[float]:
    torch.manual_seed(0)
    model = Finder(scaled)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _step in range(60):
        tokens = torch.randint(10, (32, 12))
        label = torch.mode(tokens, dim=1).values
        loss = nn.functional.cross_entropy(model(tokens), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(scaled=False)


def healthy() -> list[float]:
    return train(scaled=True)
