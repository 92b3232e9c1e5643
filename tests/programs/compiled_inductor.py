"""torch.compile as people call it; where there is no C++ compiler, with the backend that needs none."""

from __future__ import annotations

import shutil
import sys

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(9)
sys.setrecursionlimit(2000)  # inductor does so itself, unless its cache spares it the work
backend = "inductor" if shutil.which("g++") else "aot_eager"
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))
compiled = torch.compile(model, backend=backend)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

losses = []
for _step in range(60):
    x = torch.randn(64, 16)
    loss = nn.functional.mse_loss(compiled(x), x[:, :4].prod(dim=1, keepdim=True) + x[:, 4:5])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
