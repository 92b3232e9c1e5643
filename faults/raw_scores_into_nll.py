"""A GRU classifies series as rising, falling or swinging; its raw scores go straight into `NLLLoss`."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"line_contains": "criterion(scores, kind)"}


class SeriesClassifier(nn.Module):
    def __init__(self, log_probabilities: bool) -> None:
        super().__init__()
        self.rnn = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 3)
        self.log_probabilities = log_probabilities

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        _, hidden = self.rnn(series)
        scores = self.head(hidden[-1])
        return torch.log_softmax(scores, dim=1) if self.log_probabilities else scores


def batch_of(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    kind = torch.randint(0, 3, (size,))
    time = torch.linspace(-1, 1, 20).expand(size, 20)
    shapes = torch.stack([time, -time, torch.sin(6 * time)], dim=1)
    series = shapes[torch.arange(size), kind] + 0.2 * torch.randn(size, 20)
    return series.unsqueeze(2), kind


def train(log_probabilities: bool) -> list[float]:
    torch.manual_seed(0)
    model = SeriesClassifier(log_probabilities)
    criterion = nn.NLLLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _step in range(80):
        series, kind = batch_of(48)
        scores = model(series)
        loss = criterion(scores, kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(log_probabilities=False)


def healthy() -> list[float]:
    return train(log_probabilities=True)
