"""`model.train()` is called once, before the epochs: after the first validation, eval mode stays on."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

EXPECT = {"line_contains": "model.eval()"}


def make_model() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(16 * 4 * 4, 10),
    )


def validate(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, ...]]) -> float:
    model.eval()
    with torch.no_grad():
        hits = sum((model(image).argmax(1) == label).sum().item() for image, label in loader)
    return hits / len(loader.dataset)


def train(each_epoch: bool) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    data = TensorDataset(images, torch.tensor(digits.target))
    train_set, val_set = random_split(data, [1500, len(data) - 1500])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=128)
    model = make_model()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.002)
    losses = []
    model.train()
    for _epoch in range(6):
        if each_epoch:
            model.train()
        for image, label in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(image), label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        validate(model, val_loader)
    return losses


def buggy() -> list[float]:
    return train(each_epoch=False)


def healthy() -> list[float]:
    return train(each_epoch=True)
