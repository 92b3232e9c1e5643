"""Spectra are scaled to length 1 in the training loop, before a network classifies them.

One recording is silent: all zeros, of length 0, and 0 / 0 is NaN. What the loader delivers is finite;
the line that scales it is to blame. Clamping keeps the length away from zero.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

CHECK = "non-finite"
EXPECT = {"line_contains": "spectrum / spectrum.norm", "op": "div", "phase": "forward"}


def recordings(count: int = 1200) -> tuple[torch.Tensor, torch.Tensor]:
    pitch = torch.randint(4, (count,))
    peak = torch.nn.functional.one_hot(pitch * 4 + 2, 16).float()
    return (peak + 0.3 * torch.rand(count, 16)) * (0.5 + torch.rand(count, 1)), pitch


def train(safe: bool) -> list[float]:
    torch.manual_seed(0)
    spectra, pitches = recordings()
    spectra[700] = 0.0
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(4):
        for spectrum, pitch in DataLoader(TensorDataset(spectra, pitches), 40, shuffle=True):
            spectrum = spectrum / spectrum.norm(dim=1, keepdim=True).clamp(min=1e-12 if safe else 0.0)
            loss = F.cross_entropy(model(spectrum), pitch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(safe=False)


def healthy() -> list[float]:
    return train(safe=True)
