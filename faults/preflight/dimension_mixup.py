"""An LSTM that classifies waves, without `batch_first=True` although the samples come first."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"module": "lstm", "line_contains": "self.lstm("}


class WaveClassifier(nn.Module):
    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=batch_first)
        self.head = nn.Linear(24, 3)

    def forward(self, waves: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(waves)
        return self.head(hidden[:, -1])


def waves(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Slow, medium and fast ones, each from a phase of its own."""
    label = torch.randint(0, 3, (count,))
    time = torch.arange(20) / 20
    phase = torch.rand(count, 1) * 6.28
    wave = torch.sin(6.28 * (1.0 + 1.5 * label[:, None]) * time + phase)
    return (wave + 0.05 * torch.randn(count, 20))[:, :, None], label


def train(batch_first: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*waves(768)), batch_size=32, shuffle=True)
    model = WaveClassifier(batch_first)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(8):
        for wave, label in loader:
            loss = nn.functional.cross_entropy(model(wave), label)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(batch_first=False)


def healthy() -> list[float]:
    return train(batch_first=True)
