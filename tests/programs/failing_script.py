"""Trains well and then fails for a reason of its own: the exit code is the script's."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(30)
model = nn.Sequential(nn.Linear(5, 16), nn.Softplus(), nn.Linear(16, 1))
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
losses = []
for _step in range(100):
    x = torch.randn(32, 5)
    loss = nn.functional.l1_loss(model(x), x[:, :1] * 2 + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
raise FileNotFoundError("results/metrics.json")
