"""Seven hidden layers with sigmoids: each passes on at most a quarter of the gradient it receives."""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn

EXPECT = {"module": "0"}


def make_model(activation: type[nn.Module]) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Linear(13, 32), activation()]
    for _depth in range(6):
        layers += [nn.Linear(32, 32), activation()]
    model = nn.Sequential(*layers, nn.Linear(32, 3))
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
    return model


def train(activation: type[nn.Module]) -> list[float]:
    torch.manual_seed(0)
    wine = load_wine()
    features = torch.tensor(StandardScaler().fit_transform(wine.data), dtype=torch.float32)
    labels = torch.tensor(wine.target)
    model = make_model(activation)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _epoch in range(30):
        for index in torch.randperm(len(features)).split(32):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(features[index]), labels[index])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(nn.Sigmoid)


def healthy() -> list[float]:
    return train(nn.Tanh)
