"""Segmentation: every convolution gets the prior bias that only the output layer should have.

Focal-loss papers start the last bias at -log((1 - p) / p), so that rare pixels are predicted as
rare. On the hidden layers the same bias keeps the ReLUs shut.
"""

from __future__ import annotations

import math

import torch
from torch import nn

EXPECT = {"module": "act1"}


class Segmenter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.act1 = nn.ReLU()
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.act2 = nn.ReLU()
        self.mask = nn.Conv2d(16, 1, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.mask(self.act2(self.conv2(self.act1(self.conv1(image)))))


def blobs(count: int, size: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """Bright discs on a noisy ground, and their masks."""
    axis = torch.arange(size, dtype=torch.float32)
    x, y = torch.rand(2, count, 1, 1) * (size - 4) + 2
    mask = ((axis - x) ** 2 + (axis[:, None] - y) ** 2 < 9).float().unsqueeze(1)
    return mask * 2 - 0.2 + 0.4 * torch.randn(count, 1, size, size), mask


def train(with_prior: list[str]) -> list[float]:
    torch.manual_seed(0)
    model = Segmenter()
    for name in with_prior:
        nn.init.constant_(model.get_submodule(name).bias, -math.log((1 - 0.05) / 0.05))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _step in range(100):
        image, mask = blobs(16)
        loss = nn.functional.binary_cross_entropy_with_logits(model(image), mask)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(with_prior=["conv1", "conv2", "mask"])


def healthy() -> list[float]:
    return train(with_prior=["mask"])
