"""One image at a time through GroupNorm, for a mask as large as the image."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU())
        self.middle = nn.Sequential(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.GroupNorm(4, 16), nn.ReLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        wide = self.down(image)
        return self.out(torch.cat([wide, self.up(self.middle(wide))], dim=1))


torch.manual_seed(42)
model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
axis = torch.arange(16, dtype=torch.float32)
losses = []
for _step in range(120):
    x, y = torch.rand(2) * 10 + 3
    mask = ((axis - x) ** 2 + (axis[:, None] - y) ** 2 < 12).long().unsqueeze(0)
    image = mask.unsqueeze(1) * 1.5 - 0.3 + 0.5 * torch.randn(1, 1, 16, 16)
    loss = nn.functional.cross_entropy(model(image), mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
