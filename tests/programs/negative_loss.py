"""A variational autoencoder with a Gaussian density: its loss falls below zero, and that is fine."""

from __future__ import annotations

import math

import torch
from fingerprint import fingerprint
from torch import nn


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(12, 48), nn.Tanh(), nn.Linear(48, 6))
        self.decode = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 12))
        self.log_scale = nn.Parameter(torch.zeros(12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, log_var = self.encode(x).chunk(2, dim=1)
        code = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        error = (x - self.decode(code)) / self.log_scale.exp()
        log_likelihood = -(0.5 * error**2 + self.log_scale + 0.5 * math.log(2 * math.pi)).sum(dim=1)
        divergence = 0.5 * (mean**2 + log_var.exp() - 1 - log_var).sum(dim=1)
        return (divergence - log_likelihood).mean()


torch.manual_seed(39)
mixing = torch.randn(2, 12)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for _step in range(200):
    x = torch.randn(64, 2) @ mixing / 1.5 + 0.02 * torch.randn(64, 12)
    loss = model(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
