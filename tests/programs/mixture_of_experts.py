"""Top-2 routing to eight experts, and a layer that keeps its three largest units: sparse by design."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(61)


class Mixture(nn.Module):
    def __init__(self, width: int, experts: int = 8) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, width)) for _ in range(experts)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, chosen = self.gate(x).topk(2, dim=-1)
        weight = weight.softmax(dim=-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, slot = (chosen == number).nonzero(as_tuple=True)
            if len(rows):
                out = out.index_add(0, rows, weight[rows, slot, None] * expert(x[rows]))
        return x + out


class TopUnits(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        least = x.topk(3, dim=-1).values[..., -1:]
        return torch.where(x >= least, x, torch.zeros_like(x))


digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
labels = torch.tensor(digits.target)
model = nn.Sequential(
    nn.Linear(64, 32), nn.LayerNorm(32), Mixture(32), nn.LayerNorm(32), nn.Linear(32, 48), TopUnits()
)
head = nn.Linear(48, 10)
both = nn.Sequential(model, head)
optimizer = torch.optim.AdamW(both.parameters(), lr=0.003)

losses = []
for _epoch in range(4):
    for index in torch.randperm(len(images)).split(64):
        loss = nn.functional.cross_entropy(both(images[index]), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

fingerprint(both, optimizer, losses=losses)
