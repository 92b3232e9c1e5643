"""Three in a hundred are positive: once with a weighted sampler, once with a weighted loss."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(62)
x, y = make_classification(2400, 16, n_informative=8, weights=[0.97], class_sep=1.5, random_state=3)
features, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
features = (features - features.mean(0)) / features.std(0)
share = torch.bincount(labels).float() / len(labels)


def fit(loader: DataLoader[tuple[torch.Tensor, ...]], criterion: nn.Module) -> list[float]:
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _epoch in range(3):
        for batch, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    fingerprint(model, optimizer, losses=losses)
    return losses


data = TensorDataset(features, labels)
sampler = WeightedRandomSampler((1 / share[labels]).tolist(), len(labels))
fit(DataLoader(data, batch_size=48, sampler=sampler), nn.CrossEntropyLoss())
fit(DataLoader(data, batch_size=48, shuffle=True), nn.CrossEntropyLoss(weight=1 / share))
