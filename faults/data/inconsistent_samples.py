"""Short recordings of tones: a few were cut by hand and are longer than the others."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "DataLoader(", "says": "field 0 has different shapes: 297 of 1×2000, 3 of 1×2400"}
LONGER = (290, 294, 299)


class Recordings(Dataset[tuple[Tensor, int]]):
    """A low or a high tone in noise, at 8 kHz."""

    def __init__(self, longer: tuple[int, ...]) -> None:
        self.longer = longer

    def __len__(self) -> int:
        return 300

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        drawn = torch.Generator().manual_seed(index)
        label = int(torch.randint(0, 2, (), generator=drawn))
        length = 2400 if index in self.longer else 2000
        time = torch.arange(length) / 8000
        phase = 2 * math.pi * torch.rand((), generator=drawn)
        tone = torch.sin(2 * math.pi * (300 + 900 * label) * time + phase)
        return (tone + 0.5 * torch.randn(length, generator=drawn)).unsqueeze(0), label


def train(longer: tuple[int, ...]) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(Recordings(longer), batch_size=16)
    model = nn.Sequential(
        nn.Conv1d(1, 8, 32, stride=4), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 2)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for wave, label in loader:
        loss = nn.functional.cross_entropy(model(wave), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(LONGER)


def healthy() -> list[float]:
    return train(())
