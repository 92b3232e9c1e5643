"""An autoencoder's dataset standardises the stored images in place, again in every epoch."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "def __getitem__", "says": "reading a sample changes it"}


class Images(Dataset):
    def __init__(self, in_place: bool) -> None:
        self.images = load_digits().data[:640].astype(np.float32)
        self.in_place = in_place

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> torch.Tensor:
        image = self.images[index]
        if not self.in_place:
            image = image.copy()
        image -= 4.9
        image /= 6.0
        return torch.from_numpy(image)


def train(in_place: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(Images(in_place), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 64))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _epoch in range(5):
        for image in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(image), image)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(in_place=True)


def healthy() -> list[float]:
    return train(in_place=False)
