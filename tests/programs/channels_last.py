"""A convolutional network in channels_last memory format."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(33)
digits = load_digits()
images = (torch.tensor(digits.images, dtype=torch.float32) / 8 - 1).unsqueeze(1).repeat(1, 3, 1, 1)
labels = torch.tensor(digits.target)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1, groups=4),
    nn.Hardswish(),
    nn.AvgPool2d(2),
    nn.Flatten(),
    nn.Linear(256, 10),
).to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

losses = []
for _epoch in range(3):
    for index in torch.randperm(len(images)).split(64):
        image = images[index].to(memory_format=torch.channels_last)
        loss = nn.functional.cross_entropy(model(image), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
