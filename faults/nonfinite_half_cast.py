"""Tones are classified by their spectrum; to save memory the power is stored in float16.

The power of a loud recording is above 65504, the float16 limit: the cast turns it into inf. Taking
the logarithm before the cast brings every value into range.
"""

from __future__ import annotations

import torch
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": "power.half()", "module": "spectrum", "phase": "forward"}


class Spectrum(nn.Module):
    def __init__(self, log_first: bool, bands: int = 33) -> None:
        super().__init__()
        self.log_first = log_first
        self.gain = nn.Parameter(torch.ones(bands))

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        power = torch.fft.rfft(wave).abs().pow(2)
        if self.log_first:
            stored = torch.log1p(power).half()
            return stored.float() * self.gain / 4
        stored = power.half()
        return torch.log1p(stored.float()) * self.gain / 4


class ToneClassifier(nn.Module):
    def __init__(self, log_first: bool) -> None:
        super().__init__()
        self.spectrum = Spectrum(log_first)
        self.hidden = nn.Linear(33, 32)
        self.out = nn.Linear(32, 5)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        return self.out(torch.relu(self.hidden(self.spectrum(wave))))


def recordings(count: int, loud: bool) -> tuple[torch.Tensor, torch.Tensor]:
    pitch = torch.randint(5, (count,))
    time = torch.arange(64) / 64 * 2 * torch.pi
    volume = torch.rand(count, 1) + 0.5
    if loud:
        volume[0] = 12.0  # an amplitude of 12 over 64 points: a power of 147,456
    wave = volume * torch.sin(time * (3 * pitch[:, None] + 2) + torch.rand(count, 1) * 6)
    return wave + torch.randn(count, 64) * 0.3, pitch


def train(log_first: bool) -> list[float]:
    torch.manual_seed(0)
    model = ToneClassifier(log_first)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(90):
        wave, pitch = recordings(32, loud=step == 45)
        loss = nn.functional.cross_entropy(model(wave), pitch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(log_first=False)


def healthy() -> list[float]:
    return train(log_first=True)
