"""Cross-entropy with label smoothing, class weights and soft targets from mixup (rows that sum to one)."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(37)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
labels = torch.tensor(digits.target)
model = nn.Sequential(nn.Linear(64, 64), nn.PReLU(), nn.Linear(64, 10))
hard = nn.CrossEntropyLoss(weight=torch.linspace(0.8, 1.2, 10), label_smoothing=0.1)
soft = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)

losses = []
for epoch in range(4):
    for index in torch.randperm(len(images)).split(64):
        image, label = images[index], labels[index]
        if epoch % 2:
            share = torch.rand(len(image), 1)
            one_hot = nn.functional.one_hot(label, 10).float()
            loss = soft(
                model(share * image + (1 - share) * image.flip(0)),
                share * one_hot + (1 - share) * one_hot.flip(0),
            )
        else:
            loss = hard(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
