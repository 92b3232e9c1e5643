"""Diabetes progress, standardised: the model ends with a ReLU, and half of the targets are negative."""

from __future__ import annotations

import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "nn.functional.smooth_l1_loss("}


class Progress(nn.Module):
    def __init__(self, relu: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(10)
        self.hidden = nn.Linear(10, 48)
        self.out = nn.Linear(48, 1)
        self.relu = relu

    def forward(self, patient: torch.Tensor) -> torch.Tensor:
        value = self.out(torch.tanh(self.hidden(self.norm(patient))))
        return torch.relu(value) if self.relu else value


def train(relu: bool) -> list[float]:
    torch.manual_seed(0)
    patients, progress = load_diabetes(return_X_y=True)
    x = torch.tensor(StandardScaler().fit_transform(patients), dtype=torch.float32)
    y = torch.tensor(StandardScaler().fit_transform(progress[:, None]), dtype=torch.float32)
    loader = DataLoader(TensorDataset(x, y), batch_size=34, shuffle=True)
    model = Progress(relu)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(8):
        for patient, target in loader:
            loss = nn.functional.smooth_l1_loss(model(patient), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(relu=True)


def healthy() -> list[float]:
    return train(relu=False)
