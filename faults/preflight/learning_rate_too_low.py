"""A GRU that classifies waves: Adam at a rate meant for the last steps of a schedule."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "optimizer.step()"}


class Listener(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 3)

    def forward(self, wave: Tensor) -> Tensor:
        return self.head(self.gru(wave)[0][:, -1])


def train(lr: float) -> list[float]:
    torch.manual_seed(0)
    kind = torch.randint(0, 3, (768,))
    time = torch.arange(20) / 20
    phase = 6.28 * torch.rand(768, 1)
    waves = torch.sin(6.28 * time * (1 + 2 * kind.unsqueeze(1)) + phase) + 0.1 * torch.randn(768, 20)
    loader = DataLoader(TensorDataset(waves.unsqueeze(-1), kind), batch_size=32, shuffle=True)
    model = Listener()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
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
    return train(lr=1e-6)


def healthy() -> list[float]:
    return train(lr=1e-2)
