"""Training in a thread that the main program starts and does not join."""

from __future__ import annotations

import threading

import torch
from fingerprint import fingerprint
from torch import nn


def train() -> None:
    model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _step in range(120):
        x = torch.randn(32, 6)
        loss = nn.functional.mse_loss(model(x), x[:, :2].prod(dim=1, keepdim=True) + x[:, 2:3])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    fingerprint(model, optimizer, losses=losses)


torch.manual_seed(43)
threading.Thread(target=train).start()
print("started")
