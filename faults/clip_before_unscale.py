"""Mixed precision: gradients are clipped before the GradScaler has unscaled them."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

CHECK = "clip-ineffective"
EXPECT = {"line_contains": "clip_grad_norm_("}


def train(unscale: bool) -> list[float]:
    torch.manual_seed(18)
    digits = load_digits()
    images = torch.tensor(digits.data / 8 - 1, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
    losses = []
    for _epoch in range(3):
        for index in torch.randperm(len(images)).split(64):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(images[index]), labels[index])
            scaler.scale(loss).backward()
            if unscale:
                scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(unscale=False)


def healthy() -> list[float]:
    return train(unscale=True)
