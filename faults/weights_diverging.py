"""The critic of a Wasserstein GAN, on its own: its score has no limit unless the weights have one."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"module": "critic"}


class Distance(nn.Module):
    """How far apart two samples are, as the critic sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = nn.Sequential(
            nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
        )

    def forward(self, real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
        return self.critic(real).mean() - self.critic(fake).mean()


def train(limit: float) -> list[float]:
    torch.manual_seed(0)
    model = Distance()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    losses = []
    for _step in range(150):
        real, fake = torch.randn(64, 2) + 0.5, torch.randn(64, 2) - 0.5
        optimizer.zero_grad()
        loss = -model(real, fake)
        loss.backward()
        optimizer.step()
        if limit:
            for p in model.parameters():
                p.data.clamp_(-limit, limit)
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(limit=0.0)


def healthy() -> list[float]:
    return train(limit=0.1)
