"""A hand-written autograd Function (a straight-through estimator) and a module around it."""

from __future__ import annotations

from typing import Any

import torch
from fingerprint import fingerprint
from torch import nn


class Binarise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1)


class BinaryNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(16, 24)
        self.decode = nn.Linear(24, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decode(Binarise.apply(self.encode(x)))


torch.manual_seed(25)
model = BinaryNet()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
losses = []
for _step in range(120):
    pattern = torch.where(torch.randn(64, 4) > 0, 1.0, -1.0).repeat(1, 4)
    loss = nn.functional.mse_loss(model(pattern + 0.1 * torch.randn_like(pattern)), pattern)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
