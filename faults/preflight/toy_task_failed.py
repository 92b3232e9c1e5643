"""Waves told apart by a GRU: each value is normalised by itself, which leaves zeros."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()"}


class Listener(nn.Module):
    def __init__(self, normalised: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(normalised)
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 3)

    def forward(self, wave: Tensor) -> Tensor:
        values = (
            self.norm(wave.unsqueeze(-1))
            if self.norm.normalized_shape == (1,)
            else self.norm(wave).unsqueeze(-1)
        )
        return self.head(self.gru(values)[0][:, -1])


def train(normalised: int) -> list[float]:
    torch.manual_seed(0)
    kind = torch.randint(0, 3, (768,))
    time = torch.arange(20) / 20
    phase = 6.28 * torch.rand(768, 1)
    waves = torch.sin(6.28 * time * (1 + 2 * kind.unsqueeze(1)) + phase) + 0.1 * torch.randn(768, 20)
    loader = DataLoader(TensorDataset(waves, kind), batch_size=32, shuffle=True)
    model = Listener(normalised)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _epoch in range(4):
        for wave, label in loader:
            loss = nn.functional.cross_entropy(model(wave), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(normalised=1)


def healthy() -> list[float]:
    return train(normalised=20)
