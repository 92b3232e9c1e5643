"""Multi-label tagging with dropout after the output layer, on the predictions themselves."""

from __future__ import annotations

import torch
from sklearn.datasets import make_multilabel_classification
from sklearn.preprocessing import StandardScaler
from torch import nn

EXPECT = {"module": "drop", "line_contains": "nn.Dropout"}


class Tagger(nn.Module):
    def __init__(self, drop_output: bool) -> None:
        super().__init__()
        self.body = nn.Linear(20, 48)
        self.drop = nn.Dropout(0.3)
        self.tags = nn.Linear(48, 5)
        self.drop_output = drop_output

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = nn.functional.gelu(self.body(x))
        if self.drop_output:
            return self.drop(self.tags(hidden))
        return self.tags(self.drop(hidden))


def train(drop_output: bool) -> list[float]:
    torch.manual_seed(0)
    x, tags = make_multilabel_classification(600, n_classes=5, random_state=0)
    features = torch.tensor(StandardScaler().fit_transform(x), dtype=torch.float32)
    wanted = torch.tensor(tags, dtype=torch.float32)
    model = Tagger(drop_output)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
    losses = []
    for _epoch in range(6):
        for index in torch.randperm(len(features)).split(40):
            loss = criterion(model(features[index]), wanted[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(drop_output=True)


def healthy() -> list[float]:
    return train(drop_output=False)
