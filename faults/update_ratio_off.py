"""Faces of cubes from their points: a typo in the learning rate of the encoder's parameter group."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"module": "encoder"}


class PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(3, 32, 1), nn.ReLU(), nn.Conv1d(32, 32, 1), nn.ReLU())
        self.body = nn.Sequential(
            nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()
        )
        self.shape = nn.Linear(32, 3)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.shape(self.body(self.encoder(points).amax(2)))


def clouds(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on balls, on cubes and in planes."""
    kind = torch.randint(0, 3, (count,))
    points = torch.randn(count, 3, 40)
    ball = points / points.norm(dim=1, keepdim=True)
    cube = points / points.abs().amax(1, keepdim=True)
    plane = points * torch.tensor([1.0, 1.0, 0.0]).view(1, 3, 1)
    return torch.stack([ball, cube, plane])[kind, torch.arange(count)], kind


def train(encoder_lr: float) -> list[float]:
    torch.manual_seed(0)
    model = PointNet()
    optimizer = torch.optim.Adam(
        [
            {"params": model.encoder.parameters(), "lr": encoder_lr},
            {"params": [*model.body.parameters(), *model.shape.parameters()]},
        ],
        lr=0.003,
    )
    losses = []
    for _step in range(100):
        points, kind = clouds(32)
        loss = nn.functional.cross_entropy(model(points), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(encoder_lr=3e-8)


def healthy() -> list[float]:
    return train(encoder_lr=3e-3)
