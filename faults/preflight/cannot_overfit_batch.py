"""An image autoencoder that clamps its output to 0 and 1, like pixels, on standardised images."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()"}


class Autoencoder(nn.Module):
    def __init__(self, low: float, high: float) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 24))
        self.decoder = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 64))
        self.low, self.high = low, high

    def forward(self, images: Tensor) -> Tensor:
        return self.decoder(self.encoder(images)).clamp(self.low, self.high)


def train(low: float, high: float) -> list[float]:
    torch.manual_seed(0)
    pixels = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    pixels = 3 * (pixels - 0.5)
    loader = DataLoader(TensorDataset(pixels), batch_size=32, shuffle=True)
    model = Autoencoder(low, high)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    for _epoch in range(3):
        for (image,) in loader:
            loss = nn.functional.mse_loss(model(image), image)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(low=0.0, high=1.0)


def healthy() -> list[float]:
    return train(low=-3.0, high=3.0)
