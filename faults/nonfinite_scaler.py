"""A metric is learned under float16 autocast with a GradScaler, from the distances of all pairs of wines.

The distance of each wine to itself has an infinite slope, so every gradient is NaN. The scaler
takes that for an overflow: it skips each step, halves its scale, and the loss stays finite to the end.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": ".sqrt()", "op": "sqrt", "phase": "backward"}


def wines() -> tuple[torch.Tensor, torch.Tensor]:
    data = load_wine()
    x = torch.tensor(data.data, dtype=torch.float32)
    return (x - x.mean(dim=0)) / x.std(dim=0), torch.tensor(data.target)


def distances(z: torch.Tensor, small: float) -> torch.Tensor:
    squared = (z[:, None] - z[None]).square().sum(dim=-1)
    return (squared + small).sqrt()


def train(small: float) -> list[float]:
    torch.manual_seed(0)
    x, y = wines()
    model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
    losses = []
    for _step in range(60):
        picked = torch.randperm(len(x))[:48]
        with torch.autocast("cpu", dtype=torch.float16):
            z = model(x[picked])
        apart = distances(z.float(), small)
        same = (y[picked][:, None] == y[picked][None]).float()
        loss = (same * apart + (1 - same) * (2 - apart).clamp(min=0)).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(small=0.0)


def healthy() -> list[float]:
    return train(small=1e-6)
