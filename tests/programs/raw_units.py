"""House prices from areas, years and distances in raw units; the first layer normalises them."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(64)
count = 1600
area, year, distance = (
    40 + 200 * torch.rand(count),
    1900 + 120 * torch.rand(count),
    20_000 * torch.rand(count),
)
price = 2_000 * area + 800 * (year - 1900) - 6 * distance + 20_000 * torch.randn(count) + 150_000
features = torch.stack([area, year, distance], dim=1)
scale = price.std()
loader = DataLoader(TensorDataset(features, price), batch_size=64, shuffle=True)
model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

losses = []
for _epoch in range(6):
    for batch, target in loader:
        predicted = model(batch).squeeze(1)
        loss = nn.functional.mse_loss(predicted, (target - price.mean()) / scale)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
