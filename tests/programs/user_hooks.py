"""The user's own hooks of every kind; some change what they see, some are removed half-way."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(24)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
seen: dict[str, int] = {}


def count(name: str) -> None:
    seen[name] = seen.get(name, 0) + 1


handles = [
    model[0].register_forward_pre_hook(lambda _module, args: count("pre") or (args[0] * 1.5,)),
    model[1].register_forward_hook(lambda _module, _args, output: count("forward") or output * 0.9),
    model[2].register_full_backward_hook(lambda *_: count("backward")),
    model[2].register_full_backward_pre_hook(lambda *_: count("backward-pre")),
    model[4].weight.register_hook(lambda grad: count("tensor") or grad * 0.5),
    model[4].bias.register_post_accumulate_grad_hook(lambda _p: count("accumulated")),
    optimizer.register_step_pre_hook(lambda *_: count("step-pre")),
    optimizer.register_step_post_hook(lambda *_: count("step-post")),
    nn.modules.module.register_module_forward_hook(lambda *_: count("global")),
]

losses = []
for step in range(100):
    x = torch.randn(32, 8)
    loss = nn.functional.mse_loss(model(x), x[:, :1] * 2 - x[:, 1:2].abs())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step == 60:
        handles[2].remove()
        handles[8].remove()

print(sorted(seen.items()))
fingerprint(model, optimizer, losses=losses)
