"""A checkpoint saved from DataParallel has another prefix, and `strict=False` hides it."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

CHECK = "weights-untied"
EXPECT = {"line_contains": "load_state_dict("}


def make_model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))


def fit(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, lr: float) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _epoch in range(3):
        for index in torch.randperm(len(images)).split(64):
            loss = nn.functional.cross_entropy(model(images[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def train(strip: bool) -> list[float]:
    torch.manual_seed(13)
    digits = load_digits()
    images = torch.tensor(digits.data / 8 - 1, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    first = make_model()
    losses = fit(first, images[:900], labels[:900], lr=0.003)
    checkpoint = {f"module.{name}": value for name, value in first.state_dict().items()}
    if strip:
        checkpoint = {name.removeprefix("module."): value for name, value in checkpoint.items()}
    model = make_model()
    model.load_state_dict(checkpoint, strict=False)
    return losses + fit(model, images[900:], labels[900:], lr=0.001)


def buggy() -> list[float]:
    return train(strip=False)


def healthy() -> list[float]:
    return train(strip=True)
