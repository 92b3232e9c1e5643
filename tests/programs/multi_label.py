"""Several labels at once, with BCEWithLogitsLoss and positive weights."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import make_multilabel_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(38)
counts, tags = make_multilabel_classification(900, n_features=20, n_classes=6, random_state=0)
features = torch.tensor(counts, dtype=torch.float32)
features = (features - features.mean(0)) / (features.std(0) + 1e-6)
labels = torch.tensor(tags, dtype=torch.float32)
sampler = WeightedRandomSampler((labels.sum(1) + 1).tolist(), 900)
loader = DataLoader(TensorDataset(features, labels), batch_size=45, sampler=sampler)
model = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 6))
criterion = nn.BCEWithLogitsLoss(pos_weight=(1 - labels.mean(0)) / labels.mean(0).clamp(min=0.05))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

losses = []
for _epoch in range(6):
    for batch, target in loader:
        loss = criterion(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
