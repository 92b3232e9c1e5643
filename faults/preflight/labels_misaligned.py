"""A GRU reads images row by row; the collate function sorts the images by brightness, but not the labels."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "loss.backward()", "says": "a different label"}


class RowReader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 48, batch_first=True)
        self.head = nn.Linear(48, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        _, last = self.gru(images)
        return self.head(last[-1])


def train(with_labels: bool) -> list[float]:
    torch.manual_seed(0)

    def collate(items: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
        images, labels = (torch.stack(column) for column in zip(*items, strict=True))
        order = images.sum((1, 2)).argsort(descending=True)
        return images[order], labels[order] if with_labels else labels

    digits = load_digits()
    images = torch.tensor(digits.images / 16, dtype=torch.float32)
    data = TensorDataset(images, torch.tensor(digits.target))
    loader = DataLoader(data, batch_size=32, shuffle=True, collate_fn=collate)
    model = RowReader()
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
    return train(with_labels=False)


def healthy() -> list[float]:
    return train(with_labels=True)
