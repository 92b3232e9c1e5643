"""Fine-tuning: the loop that freezes the pretrained backbone also freezes the new, random adapter."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

EXPECT = {"module": "adapter"}


def make_backbone() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())


class FineTuned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = make_backbone()
        self.adapter = nn.Linear(32, 32)
        self.head = nn.Linear(32, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.adapter(self.backbone(image))))


def fit(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, lr: float) -> list[float]:
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trainable, lr=lr)
    losses = []
    for _epoch in range(6):
        for index in torch.randperm(len(images)).split(64):
            loss = nn.functional.cross_entropy(model(images[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def train(freeze: str) -> list[float]:
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
    labels = torch.tensor(digits.target)
    small = labels < 5

    pretrained = nn.Sequential(make_backbone(), nn.Linear(32, 5))
    fit(pretrained, images[small], labels[small], lr=0.003)

    model = FineTuned()
    model.backbone.load_state_dict(pretrained[0].state_dict())
    for name, parameter in model.named_parameters():
        parameter.requires_grad = not name.startswith(tuple(freeze.split()))
    return fit(model, images[~small], labels[~small] - 5, lr=0.003)


def buggy() -> list[float]:
    return train(freeze="backbone adapter")


def healthy() -> list[float]:
    return train(freeze="backbone")
