"""Large photographs that workers send as int64, though a pixel has only 256 values."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "DataLoader("}
GAIN: float | None = 1.05


class Photographs(Dataset[Any]):
    def __init__(self, dtype: Any) -> None:
        self.images = np.random.default_rng(0).integers(0, 256, (24, 3, 384, 512), dtype=np.uint8)
        self.dtype = dtype

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> Any:
        image = self.images[index % len(self.images)]
        return torch.from_numpy(image.astype(self.dtype)), float(image[0, 0, 0]) / 255


class Exposure(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Conv2d(3, 8, 16, stride=16)
        self.head = nn.Linear(8, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.look(images)).mean((2, 3)))[:, 0]


def train(dtype: Any) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(Photographs(dtype), batch_size=4, num_workers=1)
    model = Exposure()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for images, light in loader:
        small = images[:, :, ::2, ::2].float() / 255 - 0.5
        loss = nn.functional.mse_loss(model(small), light.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(np.int64)


def healthy() -> list[float]:
    return train(np.uint8)
