"""A CNN is trained on standardised digits and validated on the raw ones."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "for image, label in val_loader"}


def validate(model: nn.Module, val_loader: DataLoader) -> float:
    model.eval()
    right = total = 0
    with torch.no_grad():
        for image, label in val_loader:
            right += int((model(image).argmax(1) == label).sum())
            total += len(label)
    model.train()
    return right / total


def train(prepare_validation: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images))
    images, labels = images[order], labels[order]
    mean, std = images[:1400].mean(), images[:1400].std()
    train_images, val_images = (images[:1400] - mean) / std, images[1400:]
    if prepare_validation:
        val_images = (val_images - mean) / std
    loader = DataLoader(TensorDataset(train_images, labels[:1400]), batch_size=64, shuffle=True)
    val_loader = DataLoader(TensorDataset(val_images, labels[1400:]), batch_size=64)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(3):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(image), label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        validate(model, val_loader)
    return losses


def buggy() -> list[float]:
    return train(prepare_validation=False)


def healthy() -> list[float]:
    return train(prepare_validation=True)
