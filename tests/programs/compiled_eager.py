"""A compiled model, one compiled in place and a compiled function, with backends that need no compiler."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(10)
encoder = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 4))
decoder = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 20))
compiled_encoder = torch.compile(encoder, backend="eager")
decoder.compile(backend="aot_eager")
mixing = torch.randn(4, 20)


@torch.compile(backend="eager")
def reconstruction_loss(output: torch.Tensor, original: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(output, original)


optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.003)
losses = []
for _step in range(80):
    original = torch.randn(64, 4) @ mixing / 2
    loss = reconstruction_loss(decoder(compiled_encoder(original)), original)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(encoder, decoder, optimizer, losses=losses)
