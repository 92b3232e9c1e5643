"""Texture patches cut from a few photographs: a batch sampler takes each batch from a single photograph."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset

EXPECT = {"line_contains": "for patch, material in loader"}
MATERIALS, PATCHES = 4, 96


class OnePhotographEach(Sampler[list[int]]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return MATERIALS * PATCHES // self.size

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.randperm(MATERIALS * PATCHES).tolist()
        groups = [[i for i in order if i // PATCHES == m] for m in range(MATERIALS)]
        batches = [g[at : at + self.size] for g in groups for at in range(0, PATCHES, self.size)]
        yield from (batches[i] for i in torch.randperm(len(batches)).tolist())


def patches() -> tuple[torch.Tensor, torch.Tensor]:
    """Stripes of four directions, under noise."""
    axis = torch.arange(12.0)
    directions = [
        axis[:, None] + 0 * axis,
        axis + 0 * axis[:, None],
        axis[:, None] + axis,
        axis[:, None] - axis,
    ]
    phase = torch.rand(MATERIALS, PATCHES, 1, 1, 1) * 6.3
    waves = torch.sin(torch.stack(directions)[:, None, None] * 1.3 + phase)
    images = (waves + 0.4 * torch.randn(MATERIALS, PATCHES, 1, 12, 12)).flatten(0, 1)
    return images, torch.arange(MATERIALS).repeat_interleave(PATCHES)


def train(one_photograph: bool) -> list[float]:
    torch.manual_seed(0)
    data = TensorDataset(*patches())
    loader = (
        DataLoader(data, batch_sampler=OnePhotographEach(16))
        if one_photograph
        else DataLoader(data, batch_size=16, shuffle=True)
    )
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(200, MATERIALS)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(4):
        for patch, material in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(patch), material)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(one_photograph=True)


def healthy() -> list[float]:
    return train(one_photograph=False)
