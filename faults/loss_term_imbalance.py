"""One network redraws and classifies digits: the first error is summed, the second averaged."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "F.cross_entropy(names, label)"}


class DrawAndName(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 12), nn.Tanh())
        self.draw = nn.Linear(12, 64)
        self.name = nn.Linear(12, 10)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        code = self.encoder(image)
        return self.draw(code), self.name(code)


def train(reduction: str) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=64, shuffle=True)
    model = DrawAndName()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 if reduction == "mean" else 1e-5, momentum=0.9)
    losses = []
    for _epoch in range(4):
        for image, label in loader:
            drawing, names = model(image)
            drawn = F.mse_loss(drawing, image, reduction=reduction)
            named = F.cross_entropy(names, label)
            loss = drawn + named
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(reduction="sum")


def healthy() -> list[float]:
    return train(reduction="mean")
