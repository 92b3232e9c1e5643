"""torch.func: gradients by `grad`, an ensemble by `vmap`, and no backward() at all."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

torch.manual_seed(45)
members = [nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1)) for _ in range(3)]
template = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
weights, buffers = stack_module_state(members)
weights = {name: value.detach() for name, value in weights.items()}


def loss_of(weight: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(functional_call(template, (weight, buffers), (x,)), y)


losses = []
for _step in range(100):
    x = torch.randn(48, 6)
    y = x[:, :1].abs() + x[:, 1:2]
    gradients, values = vmap(grad_and_value(loss_of), in_dims=(0, None, None))(weights, x, y)
    weights = {name: value - 0.05 * gradients[name] for name, value in weights.items()}
    losses.append(values.mean().item())

fingerprint(template, *weights.values(), losses=losses)
