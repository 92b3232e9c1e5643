"""Fine-tuning: the backbone was trained on standardised digits and is given raw pixels from 0 to 255."""

from __future__ import annotations

import io

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "for image, label in loader"}
BATCHES = 22


def backbone() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3),
        nn.ReLU(),
        nn.Flatten(),
    )


def standardised(images: torch.Tensor) -> torch.Tensor:
    return (images - 4.88) / 6.02


def weights_of_the_zoo(images: torch.Tensor, labels: torch.Tensor) -> io.BytesIO:
    """Stands in for weights trained long ago; here, on half of the digits."""
    model = nn.Sequential(backbone(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(BATCHES):
        batch = slice(32 * step, 32 * step + 32)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(standardised(images[batch])), labels[batch]).backward()
        optimizer.step()
    file = io.BytesIO()
    torch.save(model[0].state_dict(), file)
    file.seek(0)
    return file


def train(as_the_weights_expect: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = (
        torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1),
        torch.tensor(digits.target),
    )
    weights = weights_of_the_zoo(images[:900], labels[:900])
    images, labels = images[900:], (labels[900:] % 2).float()  # a new task: odd or even
    images = standardised(images) if as_the_weights_expect else images / 16 * 255
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
    body = backbone()
    body.load_state_dict(torch.load(weights))
    model = nn.Sequential(body, nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    losses = []
    for _epoch in range(3):
        for image, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(image).squeeze(1), label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(as_the_weights_expect=False)


def healthy() -> list[float]:
    return train(as_the_weights_expect=True)
