"""Blocks are run again during the backward, with dropout that has to draw the same numbers again."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.norm(x)))))


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(10, 32)
        self.blocks = nn.ModuleList(Block(32) for _ in range(4))
        self.leave = nn.Linear(32, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.enter(x)
        for depth, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=depth % 2 == 1)
        return self.leave(x)


torch.manual_seed(26)
model = Deep()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.002)
rule = torch.randn(10, 3)
losses = []
for _step in range(80):
    x = torch.randn(48, 10)
    loss = nn.functional.cross_entropy(model(x), (x @ rule).argmax(dim=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
