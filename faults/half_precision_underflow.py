"""An autoencoder of fields under float16 autocast; its loss is divided by the size of the data set.

Adam does not mind the divisor, float16 does: the gradients of the first layers are below 6e-8, where
the format ends, and become zeros. A GradScaler multiplies before the backward pass, divides after it.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

EXPECT = {"line_contains": "nn.Sequential("}
FIELDS = 20_000


class FieldAutoencoder(nn.Module):
    def __init__(self, points: int = 256, code: int = 8) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(points, 64), nn.Tanh(), nn.Linear(64, code))
        self.decoder = nn.Sequential(nn.Linear(code, 64), nn.Tanh(), nn.Linear(64, points))

    def forward(self, field: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(field))


def fields(count: int = 32, points: int = 256) -> torch.Tensor:
    """Sums of three waves."""
    x = torch.linspace(0, 2 * torch.pi, points)
    strength = torch.randn(count, 3, 1)
    return (strength * torch.sin(torch.arange(1, 4)[:, None] * x)).sum(dim=1)


def train(scaled: bool) -> list[float]:
    torch.manual_seed(0)
    model = FieldAutoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cpu", enabled=scaled)
    losses = []
    for _step in range(80):
        field = fields()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(model(field), field) / FIELDS
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(scaled=False)


def healthy() -> list[float]:
    return train(scaled=True)
