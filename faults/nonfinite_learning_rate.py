"""A small CNN estimates how far a blob is from the centre, with SGD at a rate it can't take.

Every step overshoots further than the one before: the loss grows until it leaves float32. The NaN
is only where this ends; the learning rate is what has to change.
"""

from __future__ import annotations

import torch
from torch import nn

CHECK = "learning-rate-too-high"
EXPECT = {"line_contains": "optimizer.step()"}


class BlobRanger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 5, padding=2)
        self.hidden = nn.Linear(8 * 16, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = nn.functional.avg_pool2d(torch.relu(self.conv(image)), 3).flatten(1)
        return self.out(torch.tanh(self.hidden(features))).squeeze(1) + features.mean(dim=1)


def blobs(count: int, size: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    centre = torch.rand(count, 2) * 2 - 1
    axis = torch.linspace(-1, 1, size)
    squared = (axis - centre[:, :1]).pow(2)[:, :, None] + (axis - centre[:, 1:]).pow(2)[:, None, :]
    image = torch.exp(-squared / 0.1) * 2 + torch.randn(count, size, size) * 0.3
    return image[:, None], 2 * centre.norm(dim=1) - 1.5


def train(lr: float) -> list[float]:
    torch.manual_seed(0)
    model = BlobRanger()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    losses = []
    for _step in range(120):
        image, distance = blobs(32)
        loss = nn.functional.mse_loss(model(image), distance)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(lr=8.0)


def healthy() -> list[float]:
    return train(lr=0.05)
