"""A variational autoencoder of digits uses the log-variance as the standard deviation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

EXPECT = {"line_contains": "torch.randn_like(std)"}


class Vae(nn.Module):
    def __init__(self, exponential: bool) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.mean = nn.Linear(48, 6)
        self.logvar = nn.Linear(48, 6)
        self.decoder = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 64))
        self.exponential = exponential

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        hidden = self.encoder(image)
        mean, logvar = self.mean(hidden), self.logvar(hidden)
        std = torch.exp(0.5 * logvar) if self.exponential else logvar
        code = mean + std * torch.randn_like(std)
        return self.decoder(code), mean, logvar


def train(exponential: bool) -> list[float]:
    torch.manual_seed(0)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    loader = DataLoader(images, batch_size=64, shuffle=True)
    model = Vae(exponential)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(4):
        for image in loader:
            drawing, mean, logvar = model(image)
            drawn = F.binary_cross_entropy_with_logits(drawing, image, reduction="sum") / len(image)
            divergence = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1).mean()
            loss = drawn + divergence
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(exponential=False)


def healthy() -> list[float]:
    return train(exponential=True)
