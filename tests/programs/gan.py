"""Two models and two optimizers; the generator's backward accumulates gradients in the discriminator.

They are cleared before the discriminator's own backward, as in the DCGAN tutorial.
"""

from __future__ import annotations

import math

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(5)
generator = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=0.001, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=0.001, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)

losses = []
for _step in range(120):
    angle = torch.rand(64, 1) * 2 * math.pi
    real = torch.cat([torch.cos(angle), torch.sin(angle)], dim=1) + 0.05 * torch.randn(64, 2)

    discriminator.zero_grad()
    loss_real = criterion(discriminator(real), ones)
    loss_real.backward()
    fake = generator(torch.randn(64, 4))
    loss_fake = criterion(discriminator(fake.detach()), zeros)
    loss_fake.backward()
    optimizer_d.step()

    generator.zero_grad()
    loss_g = criterion(discriminator(fake), ones)
    loss_g.backward()
    optimizer_g.step()
    losses.append(loss_g.item())

fingerprint(generator, discriminator, optimizer_g, optimizer_d, losses=losses)
