"""No nn.Module at all: tensors, a function and torch.optim."""

from __future__ import annotations

import torch
from fingerprint import fingerprint

torch.manual_seed(13)
w1 = (torch.randn(6, 24) / 6**0.5).requires_grad_()
b1 = torch.zeros(24, requires_grad=True)
w2 = (torch.randn(24, 1) / 24**0.5).requires_grad_()


def predict(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ w1 + b1) @ w2


optimizer = torch.optim.SGD([{"params": [w1, w2]}, {"params": [b1], "lr": 0.1}], lr=0.05, momentum=0.9)
losses = []
for _step in range(120):
    x = torch.randn(64, 6)
    loss = torch.mean((predict(x) - x[:, :1] * x[:, 1:2].sign()) ** 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(w1, b1, w2, optimizer, losses=losses)
