"""A hook updates each parameter as soon as it has its gradient, and frees the gradient."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(48)
model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 1))
optimizers = {p: torch.optim.Adam([p], lr=0.003) for p in model.parameters()}


def step_now(parameter: torch.Tensor) -> None:
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(step_now)

losses = []
for _step in range(100):
    x = torch.randn(48, 10)
    loss = nn.functional.mse_loss(model(x), x[:, :1] + x[:, 1:2] * x[:, 2:3])
    loss.backward()
    losses.append(loss.item())

fingerprint(model, *optimizers.values(), losses=losses)
