"""Half the training, a checkpoint on disk, and the rest with everything read back into new objects."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(46)
losses: list[float] = []


def make() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.005)


def fit(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _step in range(steps):
        x = torch.randn(48, 8)
        loss = nn.functional.mse_loss(model(x), torch.sin(x[:, :1]) * 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "half.pt"
    model, optimizer = make()
    fit(model, optimizer, 60)
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}, path
    )
    model, optimizer = make()
    checkpoint = torch.load(path, weights_only=True)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    torch.set_rng_state(checkpoint["rng"])
    fit(model, optimizer, 60)

fingerprint(model, optimizer, losses=losses)
