"""BatchNorm with batches of changing size and a smaller last one, and images of two sizes."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)
stripes = torch.randint(2, (407,))
images = torch.randn(407, 1, 12, 12) * 0.5
pattern = torch.where(torch.arange(12) % 4 < 2, 1.0, -1.0)
images += (
    torch.where(stripes.view(-1, 1, 1, 1) == 1, pattern.view(1, 1, 1, 12), pattern.view(1, 1, 12, 1)) * 0.5
)
model = nn.Sequential(
    nn.Conv2d(1, 8, 5), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(72, 2)
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

losses = []
for epoch in range(5):
    for image, kind in DataLoader(
        TensorDataset(images, stripes), batch_size=[50, 25, 75][epoch % 3], shuffle=True
    ):
        cut = image if epoch % 2 else image[..., :10, 1:11]
        loss = nn.functional.cross_entropy(model(cut), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
