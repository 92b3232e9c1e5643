"""A causal transformer reads reviews of different lengths; one review is empty.

The causal mask puts -inf above the diagonal, as it should: those values never reach the loss. In
the empty review every key is masked, and a softmax over nothing but -inf is NaN.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

CHECK = "non-finite"
EXPECT = {"line_contains": "torch.softmax(scores", "op": "softmax", "phase": "forward", "module": "attention"}


class CausalAttention(nn.Module):
    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        count, length, width = x.shape
        parts = self.qkv(x).view(count, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        future = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        scores = (scores + future).masked_fill(padding[:, None, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return self.out((weights @ value).transpose(1, 2).reshape(count, length, width))


class ReviewClassifier(nn.Module):
    def __init__(self, vocabulary: int = 30, width: int = 32) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.norm = nn.LayerNorm(width)
        self.attention = CausalAttention(width)
        self.out = nn.Linear(width, 1)

    def forward(self, tokens: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        x = x + self.attention(self.norm(x), padding)
        kept = (~padding).float()[:, :, None]
        return self.out((x * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)).squeeze(1)


def reviews(count: int, length: int = 12) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Words below 15 are kind, the others are not; which kind prevails is the label."""
    sizes = torch.randint(3, length + 1, (count, 1))
    padding = torch.arange(length) >= sizes
    kind = torch.randint(2, (count, 1))
    tokens = torch.where(torch.rand(count, length) < 0.75, kind, 1 - kind) * 15
    tokens = tokens + torch.randint(15, (count, length))
    return tokens, padding, kind.squeeze(1).float()


def train(empty: bool) -> list[float]:
    torch.manual_seed(0)
    model = ReviewClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for step in range(100):
        tokens, padding, label = reviews(32)
        if empty and step == 50:
            padding[7] = True
        loss = F.binary_cross_entropy_with_logits(model(tokens, padding), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(empty=True)


def healthy() -> list[float]:
    return train(empty=False)
