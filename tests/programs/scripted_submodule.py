"""A TorchScript submodule and a traced one inside an ordinary model."""

from __future__ import annotations

import warnings

import torch
from fingerprint import fingerprint
from torch import nn


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.dim() == 2:
            return x * torch.sigmoid(self.gate(x))
        return x


torch.manual_seed(32)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    scripted = torch.jit.script(Gate(24))
    traced = torch.jit.trace(nn.Sequential(nn.Linear(24, 24), nn.Tanh()), torch.zeros(2, 24))
model = nn.Sequential(nn.Linear(8, 24), scripted, traced, nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

losses = []
for _step in range(100):
    x = torch.randn(48, 8)
    loss = nn.functional.mse_loss(model(x), x[:, :1] * (x[:, 1:2] > 0))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(*model.parameters(), optimizer, losses=losses)
