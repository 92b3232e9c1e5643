"""Several losses from torch.nn.functional added up: Huber, KL divergence, cosine, and a penalty."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(15)
body = nn.Sequential(nn.Linear(10, 32), nn.ELU())
to_value, to_class, to_direction = nn.Linear(32, 1), nn.Linear(32, 5), nn.Linear(32, 10)
model = nn.ModuleList([body, to_value, to_class, to_direction])
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
teacher = torch.randn(10, 5)

losses = []
for _step in range(120):
    x = torch.randn(48, 10)
    hidden = body(x)
    value = F.smooth_l1_loss(to_value(hidden).squeeze(-1), x[:, 0] * 2)
    classes = F.kl_div(
        F.log_softmax(to_class(hidden), dim=-1), F.softmax(x @ teacher, dim=-1), reduction="batchmean"
    )
    direction = F.cosine_embedding_loss(to_direction(hidden), x, torch.ones(48))
    loss = value + 0.5 * classes + direction + 1e-4 * hidden.abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
