"""Dropout of several kinds, noise, sampling and a generator of its own: every stream must stay in place."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(21)
own = torch.Generator().manual_seed(99)
model = nn.Sequential(
    nn.Conv1d(2, 16, 3, padding=1),
    nn.RReLU(),
    nn.Dropout1d(0.1),
    nn.Conv1d(16, 16, 3, padding=1),
    nn.ELU(),
    nn.AlphaDropout(0.05),
    nn.Flatten(),
    nn.Linear(16 * 20, 32),
    nn.SELU(),
    nn.FeatureAlphaDropout(0.05),
    nn.Linear(32, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)

losses, drawn = [], []
for _step in range(100):
    signal = torch.randn(32, 2, 20, generator=own)
    target = (signal[:, 0] * signal[:, 1]).mean(dim=1, keepdim=True) * 3 + signal[:, 0].mean(
        dim=1, keepdim=True
    ) * 4
    keep = torch.bernoulli(torch.full((32, 1, 20), 0.95))
    loss = nn.functional.mse_loss(model(signal * keep + 0.05 * torch.randn_like(signal)), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    drawn.append(int(torch.multinomial(torch.ones(1000), 1)) + int(torch.randint(1000, ())))

print(sum(drawn), torch.rand((), generator=own).item())
fingerprint(model, optimizer, losses=losses)
