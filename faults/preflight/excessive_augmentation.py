"""A CNN on digits with added noise: its strength is in grey levels, but the pixels are from 0 to 1."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "loss.backward()", "says": "augmentation leaves little"}


class Noise:
    def __init__(self, strength: float) -> None:
        self.strength = strength

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image + self.strength * torch.randn_like(image)


class Digits(Dataset):
    def __init__(self, transform: Noise) -> None:
        digits = load_digits()
        self.images = torch.tensor(digits.images / 16, dtype=torch.float32).unsqueeze(1)
        self.labels = torch.tensor(digits.target)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.transform(self.images[index]), self.labels[index]


def train(strength: float) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(Digits(Noise(strength)), batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(16 * 16, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(3):
        for image, label in loader:
            loss = nn.functional.cross_entropy(model(image), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(strength=4.0)


def healthy() -> list[float]:
    return train(strength=4.0 / 16)
