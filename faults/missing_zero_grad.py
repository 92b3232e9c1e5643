"""An LSTM classifies noisy waves; the gradients are never cleared, so each step repeats all before it."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "optimizer.step()"}


class WaveClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.out = nn.Linear(32, 3)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(wave)
        return self.out(states.mean(dim=1))


def waves(count: int) -> TensorDataset:
    """Sines, squares and saw teeth of random phase."""
    kind = torch.randint(3, (count,))
    t = torch.linspace(0, 12, 24) + torch.rand(count, 1) * 6
    sine = torch.sin(t)
    shapes = torch.stack([sine, sine.sign(), (t / 3.14159) % 2 - 1], dim=1)
    signal = shapes[torch.arange(count), kind] + 0.1 * torch.randn(count, 24)
    return TensorDataset(signal.unsqueeze(-1), kind)


def train(zero_grad: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(waves(640), batch_size=32, shuffle=True)
    model = WaveClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _epoch in range(5):
        for wave, kind in loader:
            if zero_grad:
                optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(wave), kind)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(zero_grad=False)


def healthy() -> list[float]:
    return train(zero_grad=True)
