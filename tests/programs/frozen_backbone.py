"""Fine-tuning: a pretrained backbone, frozen and kept in eval mode, under a new head that trains."""

from __future__ import annotations

import io

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_digits
from torch import nn


def make_backbone() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten()
    )


class FineTuned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = make_backbone()
        self.head = nn.Sequential(nn.Linear(256, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            features = self.backbone(image)
        return self.head(features)

    def train(self, mode: bool = True) -> FineTuned:
        super().train(mode)
        self.backbone.eval()
        return self


torch.manual_seed(18)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
labels = torch.tensor(digits.target)


def fit(model: nn.Module, target: torch.Tensor, lr: float) -> list[float]:
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    model.train()
    losses = []
    for _epoch in range(2):
        for index in torch.randperm(len(images)).split(64):
            loss = nn.functional.cross_entropy(model(images[index]), target[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


pretrained = nn.Sequential(make_backbone(), nn.Linear(256, 10))
fit(pretrained, labels, lr=0.003)
checkpoint = io.BytesIO()
torch.save(pretrained[0].state_dict(), checkpoint)
checkpoint.seek(0)

model = FineTuned()
model.backbone.load_state_dict(torch.load(checkpoint, weights_only=True))
model.backbone.requires_grad_(False)
losses = fit(model, labels % 2, lr=0.002)
fingerprint(pretrained, model, losses=losses)
