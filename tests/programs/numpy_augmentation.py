"""Augmentation by NumPy's and Python's generators, inside a collate function."""

from __future__ import annotations

import random

import numpy as np
import torch
from fingerprint import fingerprint
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

random.seed(22)
np.random.seed(22)
torch.manual_seed(22)
digits = load_digits()
samples = list(zip(digits.images / 8 - 1, digits.target, strict=True))


def collate(batch: list[tuple[np.ndarray, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    images = []
    for image, _ in batch:
        shifted = np.roll(image, random.choice([-1, 0, 0, 1]), axis=random.randrange(2))
        images.append(shifted * np.random.uniform(0.8, 1.2) + np.random.normal(0, 0.1, image.shape))
    labels = torch.tensor([int(label) for _, label in batch])
    return torch.tensor(np.stack(images), dtype=torch.float32).unsqueeze(1), labels


loader = DataLoader(samples, batch_size=64, shuffle=True, collate_fn=collate)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3),
    nn.LeakyReLU(),
    nn.Conv2d(12, 24, 3),
    nn.LeakyReLU(),
    nn.Flatten(),
    nn.Linear(24 * 16, 10),
)
optimizer = torch.optim.NAdam(model.parameters(), lr=0.002)

losses = []
for _epoch in range(3):
    random.shuffle(samples)
    for image, label in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
