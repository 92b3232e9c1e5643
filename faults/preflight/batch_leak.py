"""Hand-written digits read row by row: the rows of several images are mixed up by a `reshape`."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": ".reshape("}


class RowReader(nn.Module):
    """A GRU over the rows of an image; `by_reshape`: time and batch are swapped and cut again."""

    def __init__(self, by_reshape: bool) -> None:
        super().__init__()
        self.rows = nn.Linear(8, 24)
        self.gru = nn.GRU(24, 32)
        self.head = nn.Linear(32, 10)
        self.by_reshape = by_reshape

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.rows(images))
        if self.by_reshape:
            hidden = hidden.reshape(images.shape[1], images.shape[0], 24)
        else:
            hidden = hidden.transpose(0, 1)
        _, last = self.gru(hidden)
        return self.head(last[-1])


def train(by_reshape: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32) / 16
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=64, shuffle=True)
    model = RowReader(by_reshape)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _epoch in range(3):
        for image, label in loader:
            loss = nn.functional.cross_entropy(model(image), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(by_reshape=True)


def healthy() -> list[float]:
    return train(by_reshape=False)
