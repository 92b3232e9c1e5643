"""A classifier of flowers whose weights are drawn by `torch.randn`, without regard to the fan-in."""

from __future__ import annotations

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn

CHECK = "poor-initialisation"
EXPECT = {"line_contains": "nn.Linear"}


def make_model(scale: float) -> nn.Sequential:
    model = nn.Sequential(
        nn.Linear(30, 64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Linear(64, 32),
        nn.ReLU(),
        nn.Linear(32, 2),
    )
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.weight.data = torch.randn_like(layer.weight) * (scale or layer.in_features**-0.5)
    return model


def train(scale: float) -> list[float]:
    torch.manual_seed(0)
    cancer = load_breast_cancer()
    features = torch.tensor(StandardScaler().fit_transform(cancer.data), dtype=torch.float32)
    labels = torch.tensor(cancer.target)
    model = make_model(scale)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002)
    losses = []
    for _epoch in range(6):
        for index in torch.randperm(len(features)).split(40):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(features[index]), labels[index])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(scale=1.0)


def healthy() -> list[float]:
    return train(scale=0.0)
