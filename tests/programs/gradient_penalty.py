"""A Wasserstein critic with a gradient penalty, stepped five times for each step of the generator."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(47)
generator = nn.Sequential(nn.Linear(3, 24), nn.Softplus(), nn.Linear(24, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.Softplus(), nn.Linear(32, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=0.001, betas=(0.0, 0.9))
optimizer_c = torch.optim.Adam(critic.parameters(), lr=0.002, betas=(0.0, 0.9))


def penalty(real: torch.Tensor, fake: torch.Tensor) -> torch.Tensor:
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slope.norm(dim=1) - 1) ** 2).mean()


distances = []
for _step in range(40):
    for _ in range(5):
        real = torch.randn(48, 2) * 0.3 + torch.tensor([1.0, -1.0])
        fake = generator(torch.randn(48, 3)).detach()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)
        optimizer_c.zero_grad()
        loss.backward()
        optimizer_c.step()
    loss_g = -critic(generator(torch.randn(48, 3))).mean()
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
    with torch.no_grad():
        distances.append((generator(torch.randn(200, 3)).mean(0) - torch.tensor([1.0, -1.0])).norm().item())

fingerprint(generator, critic, optimizer_g, optimizer_c, losses=distances)
