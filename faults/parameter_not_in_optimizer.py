"""An autoencoder in two modules; only the decoder's parameters are given to the optimizer."""

from __future__ import annotations

from itertools import chain

import torch
from sklearn.datasets import load_digits
from torch import nn

EXPECT = {"module": "encoder"}


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 8))
        self.decoder = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 64))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(image))


def train(everything: bool) -> list[float]:
    torch.manual_seed(0)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    images = images - images.mean(dim=0)
    model = Autoencoder()
    if everything:
        parameters = chain(model.encoder.parameters(), model.decoder.parameters())
    else:
        parameters = chain(model.decoder.parameters())
    optimizer = torch.optim.Adam(parameters, lr=0.005)
    losses = []
    for _epoch in range(5):
        for batch in images[torch.randperm(len(images))].split(64):
            loss = nn.functional.mse_loss(model(batch), batch)
            model.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(everything=False)


def healthy() -> list[float]:
    return train(everything=True)
