"""Gradients are accumulated over four micro-batches; one of them contains a flat signal.

The model divides each signal by its own spread, which is zero for a flat one.
"""

from __future__ import annotations

import torch
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": "centred / spread", "op": "div", "phase": "forward", "says": "micro-batch 3"}

MICRO_BATCHES = 4


class WaveNet(nn.Module):
    """Tells sine, square and triangle waves apart."""

    def __init__(self, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.conv = nn.Conv1d(1, 16, 7, padding=3)
        self.norm = nn.GroupNorm(4, 16)
        self.out = nn.Linear(16 * 8, 3)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        centred = signal - signal.mean(dim=-1, keepdim=True)
        spread = signal.std(dim=-1, keepdim=True) + self.eps
        features = torch.relu(self.norm(self.conv(centred / spread)))
        return self.out(nn.functional.adaptive_avg_pool1d(features, 8).flatten(1))


def waves(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    shape = torch.randint(3, (count,))
    phase = torch.linspace(0, 12, 64) + torch.rand(count, 1) * 6
    sine = torch.sin(phase)
    wave = torch.stack([sine, torch.sign(sine), torch.asin(sine.clamp(-0.999, 0.999))], dim=1)
    return wave[torch.arange(count), shape][:, None] * 3 + 1, shape


def train(eps: float) -> list[float]:
    torch.manual_seed(0)
    model = WaveNet(eps)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = []
    for step in range(60):
        optimizer.zero_grad()
        total = 0.0
        for micro in range(MICRO_BATCHES):
            signal, shape = waves(8)
            if (step, micro) == (30, 2):
                signal[4] = 1.0
            loss = nn.functional.cross_entropy(model(signal), shape) / MICRO_BATCHES
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


def buggy() -> list[float]:
    return train(eps=0.0)


def healthy() -> list[float]:
    return train(eps=1e-5)
