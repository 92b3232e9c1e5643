"""Digits are classified after a learned exposure: the square root of the light, times a gain.

In the forward pass, `where` leaves the dark pixels out. In the backward pass the derivative of the
root at 0 is still computed for them, and multiplied by 0: that is NaN.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": "torch.sqrt(", "op": "sqrt", "phase": "backward", "module": "exposure"}


class Exposure(nn.Module):
    def __init__(self, inside: bool) -> None:
        super().__init__()
        self.inside = inside
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        lit = image > 0
        light = image * self.gain
        if self.inside:
            light = torch.where(lit, light, torch.ones_like(light))
        return torch.where(lit, torch.sqrt(light), torch.zeros_like(light))


class ExposedDigits(nn.Module):
    def __init__(self, inside: bool) -> None:
        super().__init__()
        self.exposure = Exposure(inside)
        self.conv = nn.Conv2d(1, 16, 3)
        self.out = nn.Linear(16 * 9, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = torch.relu(self.conv(self.exposure(image)))
        return self.out(nn.functional.max_pool2d(features, 2).flatten(1))


def train(inside: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    model = ExposedDigits(inside)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _step in range(120):
        pick = torch.randint(len(images), (64,))
        loss = nn.functional.cross_entropy(model(images[pick]), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(inside=False)


def healthy() -> list[float]:
    return train(inside=True)
