"""autocast in bfloat16 on the CPU, with a GradScaler that scales, unscales, clips and steps."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(7)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 8 - 1
labels = torch.tensor(digits.target)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(256, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.002)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)

losses = []
for _epoch in range(4):
    for index in torch.randperm(len(images)).split(64):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images[index]), labels[index])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())

print(scaler.get_scale())
fingerprint(model, optimizer, losses=losses)
