"""Digits classified by their similarity to ten directions, divided by far too small a temperature."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "F.cross_entropy(scores, label)"}


class CosineClassifier(nn.Module):
    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 24))
        self.directions = nn.Parameter(torch.randn(10, 24))
        self.temperature = temperature

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = F.normalize(self.body(image), dim=1)
        similar = features @ F.normalize(self.directions, dim=1).T
        return similar / self.temperature


def train(temperature: float) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=64, shuffle=True)
    model = CosineClassifier(temperature)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(4):
        for image, label in loader:
            optimizer.zero_grad()
            scores = model(image)
            loss = F.cross_entropy(scores, label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(temperature=0.005)


def healthy() -> list[float]:
    return train(temperature=0.1)
