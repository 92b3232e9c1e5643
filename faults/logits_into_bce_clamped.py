"""An autoencoder of digits whose raw output is clamped to 0 and 1 so that `binary_cross_entropy` takes it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

CHECK = "logits-into-bce"
EXPECT = {"line_contains": "F.binary_cross_entropy(picture, image)"}


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(image))


def train(clamp: bool) -> list[float]:
    torch.manual_seed(0)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    loader = DataLoader(images, batch_size=64, shuffle=True)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    losses = []
    for _epoch in range(4):
        for image in loader:
            output = model(image)
            picture = output.clamp(0, 1) if clamp else torch.sigmoid(output)
            loss = F.binary_cross_entropy(picture, image)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(clamp=True)


def healthy() -> list[float]:
    return train(clamp=False)
