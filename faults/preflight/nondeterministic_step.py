"""A denoising autoencoder that draws its noise from a generator that no seed controls."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "noise"}


class Denoiser(nn.Module):
    def __init__(self, unseeded: bool) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 64))
        self.unseeded = unseeded

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.unseeded:
            noise = torch.tensor(np.random.default_rng().normal(size=x.shape), dtype=torch.float32)
        else:
            noise = torch.randn_like(x)
        return self.decoder(self.encoder(x + 0.2 * noise))


def train(unseeded: bool) -> list[float]:
    torch.manual_seed(0)
    pixels = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    loader = DataLoader(TensorDataset(pixels), batch_size=64, shuffle=True)
    model = Denoiser(unseeded)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(4):
        for (image,) in loader:
            loss = nn.functional.mse_loss(model(image), image)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(unseeded=True)


def healthy() -> list[float]:
    return train(unseeded=False)
