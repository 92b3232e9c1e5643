"""A recurrent adder whose gradients are clipped after the optimizer has used them."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"line_contains": "clip_grad_norm_("}


class Adder(nn.Module):
    """Sums the marked numbers of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(2, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, last = self.rnn(x)
        return self.out(last[0]).squeeze(1)


def train(clip_late: bool) -> list[float]:
    torch.manual_seed(17)
    model = Adder()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _step in range(100):
        numbers, marks = torch.rand(32, 8), (torch.rand(32, 8) < 0.3).float()
        loss = nn.functional.mse_loss(
            model(torch.stack([numbers, marks], dim=-1)), (numbers * marks).sum(dim=1)
        )
        optimizer.zero_grad()
        loss.backward()
        if not clip_late:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if clip_late:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(clip_late=True)


def healthy() -> list[float]:
    return train(clip_late=False)
