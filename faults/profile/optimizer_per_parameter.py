"""A deep and narrow residual network whose optimizer updates its many small parameters one by one."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"line_contains": "torch.optim.Adam("}
GAIN: float | None = 1.05


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(32))
        self.head = nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + 0.1 * torch.tanh(layer(x))
        return self.head(x)[:, 0]


def train(fused: bool) -> list[float]:
    torch.manual_seed(0)
    features = torch.randn(2048, 16)
    targets = (features[:, 0] * features[:, 1]).tanh() + features[:, 2]
    model = Deep()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused)
    losses = []
    for _step in range(110):
        chosen = torch.randint(len(features), (64,))
        loss = nn.functional.mse_loss(model(features[chosen]), targets[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(fused=False)


def healthy() -> list[float]:
    return train(fused=True)
