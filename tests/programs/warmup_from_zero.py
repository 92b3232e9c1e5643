"""The learning rate starts at exactly zero, rises linearly and decays as a cosine."""

from __future__ import annotations

import math

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(36)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
labels = torch.tensor(digits.target)
model = nn.Sequential(
    nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
TOTAL, WARM = 29 * 4, 25


def schedule(step: int) -> float:
    if step < WARM:
        return step / WARM
    return 0.5 * (1 + math.cos(math.pi * (step - WARM) / (TOTAL - WARM)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
losses = []
for _epoch in range(4):
    for index in torch.randperm(len(images)).split(64):
        loss = nn.functional.cross_entropy(model(images[index]), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
