"""Bad batches raise inside the forward and inside the backward; the loop catches that and goes on."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn


class Strict(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 24)
        self.second = nn.Linear(24, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x))
        if len(x) < 8:
            raise ValueError(f"a batch of {len(x)} is too small")
        return self.second(hidden)


torch.manual_seed(28)
model = Strict()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
losses, skipped = [], []
for step in range(100):
    x = torch.randn(4 if step % 17 == 3 else 32, 5 if step % 23 == 9 else 6)
    optimizer.zero_grad()
    try:
        loss = nn.functional.mse_loss(model(x), x[:, :1] - x[:, 1:2] ** 2)
        if step % 29 == 11:
            loss = loss.detach()
        loss.backward()
    except (ValueError, RuntimeError) as error:
        skipped.append(f"{step}: {type(error).__name__}")
        continue
    optimizer.step()
    losses.append(loss.item())

print(skipped)
fingerprint(model, optimizer, losses=losses)
