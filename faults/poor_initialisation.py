"""An autoencoder of sensor readings: the user's own `init_weights` sets every weight to a constant."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"module": "encoder", "line_contains": "nn.Linear(12, 24)"}


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 4))
        self.decoder = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(x))


def init_constant(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, 0.1)
        nn.init.zeros_(module.bias)


def init_random(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


def train(init) -> list[float]:
    torch.manual_seed(0)
    readings = torch.tanh(torch.randn(512, 4) @ torch.randn(4, 12) / 2)
    model = Autoencoder().apply(init)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(8):
        for batch in readings[torch.randperm(512)].split(64):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(batch), batch)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(init_constant)


def healthy() -> list[float]:
    return train(init_random)
