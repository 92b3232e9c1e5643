"""Validation between epochs, in eval mode and without gradients; the best weights are kept and restored."""

from __future__ import annotations

import copy

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(11)
digits = load_digits()
data = TensorDataset(torch.tensor(digits.data, dtype=torch.float32) / 8 - 1, torch.tensor(digits.target))
train_set, val_set = random_split(data, [1400, len(data) - 1400])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=200)
model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)


def validate() -> float:
    model.eval()
    total = 0.0
    with torch.no_grad():
        for image, label in val_loader:
            total += criterion(model(image), label).item() * len(image)
    return total / len(val_set)


best, best_weights = float("inf"), copy.deepcopy(model.state_dict())
losses = []
for _epoch in range(5):
    model.train()
    for image, label in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(image), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    score = validate()
    scheduler.step(score)
    if score < best:
        best, best_weights = score, copy.deepcopy(model.state_dict())

model.load_state_dict(best_weights)
print(f"best {best:.6f}")
fingerprint(model, optimizer, losses=losses)
