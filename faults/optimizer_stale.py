"""An autoencoder is copied after its optimizer was created: the optimizer updates the original."""

from __future__ import annotations

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn

EXPECT = {"line_contains": "torch.optim.Adam("}


class AutoEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(image))


def train(copy_first: bool) -> list[float]:
    torch.manual_seed(6)
    images = torch.tensor(load_digits().data / 8 - 1, dtype=torch.float32)
    pretrained = AutoEncoder()
    model = copy.deepcopy(pretrained) if copy_first else pretrained
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    if not copy_first:
        model = copy.deepcopy(pretrained)
    losses = []
    for _epoch in range(3):
        for batch in images[torch.randperm(len(images))].split(64):
            loss = nn.functional.mse_loss(model(batch), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(copy_first=False)


def healthy() -> list[float]:
    return train(copy_first=True)
