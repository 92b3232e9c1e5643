"""Wine by its chemistry, with sigmoids: all layers get a bias of six, as LSTM gates do.

That keeps a gate open. In a hidden layer it keeps all units close to one, for any
input.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn

EXPECT = {"module": "hidden"}


class Classifier(nn.Module):
    def __init__(self, bias: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(13, 32)
        self.deeper = nn.Linear(32, 32)
        self.out = nn.Linear(32, 3)
        for layer in (self.hidden, self.deeper):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.constant_(layer.bias, bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.sigmoid(self.deeper(torch.sigmoid(self.hidden(x)))))


def train(bias: float) -> list[float]:
    torch.manual_seed(0)
    wine = load_wine()
    features = torch.tensor(StandardScaler().fit_transform(wine.data), dtype=torch.float32)
    labels = torch.tensor(wine.target)
    model = Classifier(bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _epoch in range(20):
        for index in torch.randperm(len(features)).split(30):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(features[index]), labels[index])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(bias=6.0)


def healthy() -> list[float]:
    return train(bias=0.0)
