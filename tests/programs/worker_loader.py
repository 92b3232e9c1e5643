"""Two loader workers that draw random numbers, with a seeded generator and a worker_init_fn."""

from __future__ import annotations

import random

import numpy as np
import torch
from fingerprint import fingerprint
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shifted(Dataset[tuple[torch.Tensor, int]]):
    """Bumps at random places: left or right of the middle."""

    def __len__(self) -> int:
        return 960

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        right = index % 2
        place = random.uniform(2, 14) + 16 * right + np.random.normal(0, 0.5)
        axis = torch.arange(32, dtype=torch.float32)
        return torch.exp(-((axis - place) ** 2) / 8) * 2 - 0.5 + 0.1 * torch.randn(32), right


def seed_worker(_worker: int) -> None:
    np.random.seed(torch.initial_seed() % 2**32)
    random.seed(torch.initial_seed() % 2**32)


def main() -> None:
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(4)
    loader = DataLoader(
        Shifted(), batch_size=32, shuffle=True, num_workers=2, worker_init_fn=seed_worker, generator=generator
    )
    model = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    losses = []
    for _epoch in range(2):
        for signal, side in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(signal), side)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    fingerprint(model, optimizer, losses=losses)


if __name__ == "__main__":
    main()
