"""A CNN on digits returns probabilities, and `CrossEntropyLoss` applies softmax to them again."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "criterion(output, label)"}


class DigitNet(nn.Module):
    def __init__(self, probabilities: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(16 * 2 * 2, 10)
        self.probabilities = probabilities

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        image = self.pool(torch.relu(self.conv1(image)))
        image = self.pool(torch.relu(self.conv2(image)))
        scores = self.fc(image.flatten(1))
        return torch.softmax(scores, dim=1) if self.probabilities else scores


def train(probabilities: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    dataset = TensorDataset(images, torch.tensor(digits.target))
    loader = DataLoader(dataset, batch_size=64, shuffle=True)
    model = DigitNet(probabilities)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _epoch in range(4):
        for image, label in loader:
            optimizer.zero_grad()
            output = model(image)
            loss = criterion(output, label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(probabilities=True)


def healthy() -> list[float]:
    return train(probabilities=False)
