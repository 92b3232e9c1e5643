"""Tensors in memory, cut into batches by hand."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(2)
features = torch.randn(800, 12)
targets = torch.sin(features[:, :3]).sum(dim=1, keepdim=True) + 0.1 * torch.randn(800, 1)
model = nn.Sequential(nn.Linear(12, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003, weight_decay=0.01)

losses = []
for _epoch in range(8):
    order = torch.randperm(800)
    for start in range(0, 800, 50):
        batch = order[start : start + 50]
        loss = ((model(features[batch]) - targets[batch]) ** 2).mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
