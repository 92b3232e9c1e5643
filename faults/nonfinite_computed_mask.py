"""Attention by the angle between words, over reviews of different lengths.

`torch.log(kept)` is the mask: 0 for a word, -inf for padding, and harmless. Its angle is not: padding is a
vector of zeros, and 0 / 0 is NaN, two lines below.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

CHECK = "non-finite"
EXPECT = {
    "line_contains": "query / query.norm",
    "op": "div",
    "phase": "forward",
    "module": "attention",
}


class AngleAttention(nn.Module):
    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.eps = eps

    def forward(self, x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        mask = torch.log(kept)[:, None, :]
        query, key = self.query(x), F.normalize(self.key(x), dim=-1)
        query = query / query.norm(dim=-1, keepdim=True).clamp(min=self.eps)
        weights = torch.softmax(5 * query @ key.transpose(1, 2) + mask, dim=-1)
        return weights @ x


class ReviewClassifier(nn.Module):
    def __init__(self, eps: float, width: int = 32) -> None:
        super().__init__()
        self.tokens = nn.Embedding(30, width)
        self.attention = AngleAttention(width, eps)
        self.out = nn.Linear(width, 1)

    def forward(self, tokens: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) * kept[:, :, None]
        return self.out(self.attention(x, kept).mean(dim=1)).squeeze(1)


def reviews(count: int, full: bool, length: int = 12) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Words below 15 are kind, the others are not; which kind prevails is the label."""
    sizes = torch.full((count, 1), length) if full else torch.randint(6, length + 1, (count, 1))
    kind = torch.randint(2, (count, 1))
    tokens = torch.where(torch.rand(count, length) < 0.75, kind, 1 - kind) * 15
    tokens = tokens + torch.randint(15, (count, length))
    return tokens, (torch.arange(length) < sizes).float(), kind.squeeze(1).float()


def train(eps: float) -> list[float]:
    torch.manual_seed(0)
    model = ReviewClassifier(eps)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for step in range(100):
        tokens, kept, label = reviews(32, full=step < 50)
        loss = F.binary_cross_entropy_with_logits(model(tokens, kept), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(eps=0.0)


def healthy() -> list[float]:
    return train(eps=1e-6)
