"""Segmentation with a custom overlap loss: the overlap itself is minimised."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "overlap.mean()"}


def dice_loss(scores: torch.Tensor, masks: torch.Tensor, inverted: bool) -> torch.Tensor:
    chances = torch.sigmoid(scores)
    both = (chances * masks).sum((1, 2, 3))
    overlap = (2 * both + 1) / (chances.sum((1, 2, 3)) + masks.sum((1, 2, 3)) + 1)
    return overlap.mean() if inverted else 1 - overlap.mean()


def blobs(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Bright squares on noise, and where they are."""
    masks = torch.zeros(count, 1, 16, 16)
    for mask in masks:
        row, column = torch.randint(0, 10, (2,)).tolist()
        mask[0, row : row + 6, column : column + 6] = 1
    return masks + 0.6 * torch.randn_like(masks), masks


def train(inverted: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*blobs(256)), batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 1, 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(5):
        for image, mask in loader:
            loss = dice_loss(model(image), mask, inverted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(inverted=True)


def healthy() -> list[float]:
    return train(inverted=False)
