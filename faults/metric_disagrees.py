"""Blobs in four groups: the accuracy compares labels with the highest score, not with its position."""

from __future__ import annotations

import torch
from sklearn.datasets import make_blobs
from torch import nn

import clew

EXPECT = {"line_contains": "clew.log(train_accuracy="}


def train(position: int) -> list[float]:
    torch.manual_seed(0)
    points, groups = make_blobs(600, centers=4, n_features=6, random_state=0)
    x = torch.tensor((points - points.mean(0)) / points.std(0), dtype=torch.float32)
    y = torch.tensor(groups)
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    losses = []
    for epoch in range(8):
        order = torch.randperm(600)
        right = 0
        for start in range(0, 600, 40):
            rows = order[start : start + 40]
            scores = model(x[rows])
            loss = criterion(scores, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((scores.max(dim=1)[position] == y[rows]).sum())
            losses.append(loss.item())
        clew.log(train_accuracy=right / 600, epoch=epoch)
    return losses


def buggy() -> list[float]:
    return train(position=0)  # the values of the highest scores


def healthy() -> list[float]:
    return train(position=1)  # their positions
