"""No optimizer either: the update is written by hand under no_grad, as in the first PyTorch tutorial."""

from __future__ import annotations

import math

import torch
from fingerprint import fingerprint

torch.manual_seed(14)
x = torch.linspace(-1, 1, 400)
y = torch.sin(math.pi * x)
a, b, c, d = (torch.randn((), requires_grad=True) for _ in range(4))

losses = []
for _step in range(300):
    loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).mean()
    loss.backward()
    losses.append(loss.item())
    with torch.no_grad():
        for parameter in (a, b, c, d):
            parameter -= 0.1 * parameter.grad
            parameter.grad = None

fingerprint(a, b, c, d, losses=losses)
