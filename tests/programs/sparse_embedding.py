"""Sparse gradients: SparseAdam for the embedding, Adam for the rest, both in each step."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(35)
items = nn.Embedding(500, 16, sparse=True)
head = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
optimizers = [
    torch.optim.SparseAdam(list(items.parameters()), lr=0.02),
    torch.optim.Adam(head.parameters(), lr=0.005),
]
worth = torch.randn(500, 1)

losses = []
for _step in range(150):
    index = (torch.rand(64) ** 3 * 500).long()
    loss = nn.functional.mse_loss(head(items(index)), worth[index])
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    losses.append(loss.item())

fingerprint(items, head, *optimizers, losses=losses)
