"""Blocks under activation checkpointing read padded sequences; one weights each position by its length.

Padded positions are vectors of zeros, whose length is `sqrt(0)`. What was not kept in the forward
pass is computed again in the backward pass, where the derivative of that root gives NaN.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

CHECK = "non-finite"
EXPECT = {"line_contains": "torch.sqrt(", "op": "sqrt", "phase": "backward", "module": "blocks.1"}


class Block(nn.Module):
    def __init__(self, width: int, weighs: bool, eps: float) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(0.1)
        self.weighs, self.eps = weighs, eps

    def forward(self, x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        change = self.outer(self.dropout(torch.relu(self.inner(x))))
        if self.weighs:
            length = torch.sqrt(x.pow(2).sum(dim=-1, keepdim=True) + self.eps)
            change = change * torch.tanh(length)
        return (x + change) * kept


class WordCounter(nn.Module):
    """How many of the tokens are of the first kind."""

    def __init__(self, eps: float, width: int = 24) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, width)
        self.blocks = nn.ModuleList(Block(width, n == 1, eps) for n in range(3))
        self.out = nn.Linear(width, 1)

    def forward(self, tokens: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) * kept
        for block in self.blocks:
            x = checkpoint(block, x, kept, use_reentrant=False)
        return self.out(x.mean(dim=1)).squeeze(1)


def train(eps: float) -> list[float]:
    torch.manual_seed(0)
    model = WordCounter(eps)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    for step in range(80):
        tokens = torch.randint(20, (32, 10))
        sizes = torch.randint(4, 10, (32, 1)) if step >= 30 else torch.full((32, 1), 10)
        kept = torch.arange(10) < sizes
        wanted = ((tokens < 10) & kept).sum(dim=1) / 5 - 1
        loss = nn.functional.mse_loss(model(tokens, kept.float()[:, :, None]), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(eps=0.0)


def healthy() -> list[float]:
    return train(eps=1e-6)
