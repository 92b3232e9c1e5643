"""Tumours: the labels are text, and a comparison with the wrong word turns every one of them into 0."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "binary_cross_entropy_with_logits"}


def train(word: str) -> list[float]:
    torch.manual_seed(0)
    cancer = load_breast_cancer()
    features = torch.tensor(cancer.data, dtype=torch.float32)
    features = (features - features.mean(0)) / features.std(0)
    names = np.array(cancer.target_names)[cancer.target]  # "malignant", "benign"
    labels = torch.tensor(names == word, dtype=torch.float32)
    loader = DataLoader(TensorDataset(features, labels), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _epoch in range(4):
        for batch, label in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(batch).squeeze(1), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train("Malignant")


def healthy() -> list[float]:
    return train("malignant")
