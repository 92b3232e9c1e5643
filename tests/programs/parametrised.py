"""Weight norm, spectral norm and a custom parametrisation: weights computed again in each forward."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn
from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm
from torch.nn.utils.parametrize import register_parametrization


class Symmetric(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight.triu() + weight.triu(1).transpose(-1, -2)


torch.manual_seed(44)
square = nn.Linear(24, 24)
register_parametrization(square, "weight", Symmetric())
model = nn.Sequential(
    weight_norm(nn.Linear(8, 24)),
    nn.Tanh(),
    spectral_norm(nn.Linear(24, 24)),
    nn.Tanh(),
    orthogonal(nn.Linear(24, 24)),
    nn.Tanh(),
    square,
    nn.Tanh(),
    nn.Linear(24, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

losses = []
for _step in range(100):
    x = torch.randn(48, 8)
    loss = nn.functional.mse_loss(model(x), x[:, :1] - 0.5 * x[:, 1:2] ** 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
