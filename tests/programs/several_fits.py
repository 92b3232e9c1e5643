"""Cross-validation: a new model and a new optimizer for each fold of the wine data."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(12)
wine = load_wine()
labels = torch.tensor(wine.target)
models = []
losses: list[float] = []
folds = StratifiedKFold(3, shuffle=True, random_state=0)
for train_index, test_index in folds.split(wine.data, wine.target):
    scaler = StandardScaler().fit(wine.data[train_index])
    features = torch.tensor(scaler.transform(wine.data), dtype=torch.float32)
    model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for _epoch in range(12):
        for index in torch.tensor(train_index)[torch.randperm(len(train_index))].split(24):
            loss = nn.functional.cross_entropy(model(features[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    with torch.inference_mode():
        hits = (model(features[test_index]).argmax(1) == labels[test_index]).sum()
    print(f"fold {len(models)}: {hits}/{len(test_index)}")
    models.append(model)

fingerprint(*models, losses=losses)
