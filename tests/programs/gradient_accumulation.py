"""Four backwards for each step, with the loss divided by four."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
cancer = load_breast_cancer()
features = torch.tensor(cancer.data, dtype=torch.float32)
features = (features - features.mean(0)) / features.std(0)
data = TensorDataset(features, torch.tensor(cancer.target, dtype=torch.float32))
loader = DataLoader(data, batch_size=8, shuffle=True, drop_last=True)
model = nn.Sequential(nn.Linear(30, 32), nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.002)

losses = []
for _epoch in range(5):
    optimizer.zero_grad()
    for index, (batch, label) in enumerate(loader):
        loss = nn.functional.binary_cross_entropy_with_logits(model(batch).squeeze(1), label)
        (loss / 4).backward()
        losses.append(loss.item())
        if (index + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

fingerprint(model, optimizer, losses=losses)
