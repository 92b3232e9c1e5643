"""Two losses of one graph, each with its own backward, the first one keeping the graph."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU())
        self.sign = nn.Linear(32, 2)
        self.size = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(x)
        return self.sign(hidden), self.size(hidden)


torch.manual_seed(49)
model = TwoHeads()
optimizer = torch.optim.Adamax(model.parameters(), lr=0.005)
losses = []
for _step in range(120):
    x = torch.randn(48, 8)
    sign, size = model(x)
    optimizer.zero_grad()
    first = nn.functional.cross_entropy(sign, (x[:, 0] > 0).long())
    second = nn.functional.mse_loss(size, x[:, :3].abs().sum(dim=1, keepdim=True) / 2)
    first.backward(retain_graph=True)
    (0.5 * second).backward()
    optimizer.step()
    losses.append((first + second).item())

fingerprint(model, optimizer, losses=losses)
