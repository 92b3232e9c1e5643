"""A compiled model that measures angles: `acos` of a cosine that is rounded to 1.

At 1 the derivative of `acos` is infinite. Compiled code has no line to point at; the model it was
compiled from has.
"""

from __future__ import annotations

import torch
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": "torch.acos(", "op": "acos", "phase": "backward"}


class AngleRegressor(nn.Module):
    """Predicts a score from the angle between two projected vectors."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit
        self.project = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 8))
        self.out = nn.Linear(1, 1)

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        cosine = nn.functional.cosine_similarity(self.project(left), self.project(right), dim=1)
        angle = torch.acos(cosine.clamp(-self.limit, self.limit))
        return self.out(angle[:, None]).squeeze(1)


def pairs(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    left, right = torch.randn(2, count, 6)
    return left, right, (left[:, :3] - right[:, :3]).norm(dim=1)


def train(limit: float) -> list[float]:
    torch.manual_seed(0)
    model = torch.compile(AngleRegressor(limit), backend="aot_eager")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(80):
        left, right, apart = pairs(32)
        if step == 40:
            right[3], apart[3] = left[3], 0.0
        loss = nn.functional.mse_loss(model(left, right), apart)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(limit=1.0)


def healthy() -> list[float]:
    return train(limit=0.999)
