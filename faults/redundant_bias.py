"""A convolutional denoiser: every convolution before a batch normalisation has a bias of its own."""

from __future__ import annotations

import torch
from torch import nn

SEVERITY = "advice"
EXPECT = {"module": "0", "line_contains": "nn.Conv1d(1, 16, 5"}


def make_model(bias: bool) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(1, 16, 5, padding=2, bias=bias),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Conv1d(16, 16, 5, padding=2, bias=bias),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.Conv1d(16, 1, 1),
    )


def train(bias: bool) -> list[float]:
    torch.manual_seed(0)
    model = make_model(bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    time = torch.linspace(0, 6.28, 64)
    losses = []
    for _step in range(80):
        clean = torch.sin(time * torch.randint(1, 5, (16, 1)) + 6.28 * torch.rand(16, 1)).unsqueeze(1)
        loss = (model(clean + 0.3 * torch.randn_like(clean)) - clean).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(bias=True)


def healthy() -> list[float]:
    return train(bias=False)
