"""A Siamese network learns which digits look alike; one pair is the same image twice, at distance zero.

The derivative of `sqrt` at zero is infinite, and infinity times zero is NaN: the loss is finite,
the gradient is not, and after one step the weights are NaN.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

EXPECT = {"line_contains": "torch.sqrt(squared + eps)", "op": "sqrt", "phase": "backward"}


class Embedder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(64, 64)
        self.embed = nn.Linear(64, 16)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.embed(torch.relu(self.hidden(image)))


def contrastive_loss(distance: torch.Tensor, same: torch.Tensor, margin: float = 2.0) -> torch.Tensor:
    apart = torch.clamp(margin - distance, min=0)
    return (same * distance**2 + (1 - same) * apart**2).mean()


def train(eps: float) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    model = Embedder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(100):
        left, right = torch.randint(len(images), (2, 64))
        if step == 40:
            right[0] = left[0]
        same = (labels[left] == labels[right]).float()
        squared = (model(images[left]) - model(images[right])).pow(2).sum(dim=1)
        loss = contrastive_loss(torch.sqrt(squared + eps), same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(eps=0.0)


def healthy() -> list[float]:
    return train(eps=1e-8)
