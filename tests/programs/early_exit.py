"""Leaves in the middle of a loop by sys.exit(0), as on reaching a target."""

from __future__ import annotations

import atexit
import sys

import torch
from fingerprint import fingerprint
from torch import nn

atexit.register(print, "goodbye")
torch.manual_seed(29)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
rule = torch.randn(5, 1)
losses = []
for _step in range(1000):
    x = torch.randn(32, 5)
    loss = nn.functional.mse_loss(model(x), x @ rule)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if loss.item() < 0.001:
        fingerprint(model, optimizer, losses=losses)
        sys.exit(0)
