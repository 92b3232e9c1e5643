"""A denoiser's dataset draws its noise from a generator that every worker gets a copy of."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

EXPECT = {"line_contains": "for noisy, clean in loader"}


class NoisyDigits(Dataset):
    def __init__(self) -> None:
        self.digits = (load_digits().data[:800] / 16).astype(np.float32)
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return len(self.digits)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        clean = self.digits[index]
        return clean + 0.2 * self.rng.standard_normal(64, dtype=np.float32), clean


def seed_worker(worker: int) -> None:
    get_worker_info().dataset.rng = np.random.default_rng(torch.initial_seed() + worker)


def train(own_seeds: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(
        NoisyDigits(),
        batch_size=16,
        shuffle=True,
        num_workers=2,
        worker_init_fn=seed_worker if own_seeds else None,
    )
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _epoch in range(2):
        for noisy, clean in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(noisy), clean)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(own_seeds=False)


def healthy() -> list[float]:
    return train(own_seeds=True)
