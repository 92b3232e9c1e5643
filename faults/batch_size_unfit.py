"""Segmentation of bright blobs, one image at a time, with batch normalisation."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"module": "1"}


def blobs(count: int) -> TensorDataset:
    """A disc on noise, and the mask of the disc."""
    grid = torch.stack(torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij"))
    centres = 4 + 8 * torch.rand(count, 2, 1, 1)
    masks = ((grid - centres).square().sum(dim=1, keepdim=True) < 10).float()
    return TensorDataset(masks + 0.4 * torch.randn(count, 1, 16, 16), masks)


def train(group_norm: bool) -> list[float]:
    torch.manual_seed(20)
    loader = DataLoader(blobs(120), batch_size=1, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.GroupNorm(2, 8) if group_norm else nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 1, 3, padding=1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for image, mask in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(image), mask)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(group_norm=False)


def healthy() -> list[float]:
    return train(group_norm=True)
