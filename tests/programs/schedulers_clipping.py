"""A one-cycle schedule per step, parameter groups, and clipping by norm and by value."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(23)
diabetes = load_diabetes()
features = torch.tensor(StandardScaler().fit_transform(diabetes.data), dtype=torch.float32)
targets = torch.tensor(diabetes.target, dtype=torch.float32).unsqueeze(1)
targets = (targets - targets.mean()) / targets.std()
model = nn.Sequential(nn.Linear(10, 32), nn.Mish(), nn.Linear(32, 32), nn.Mish(), nn.Linear(32, 1))
decayed = [p for p in model.parameters() if p.ndim > 1]
free = [p for p in model.parameters() if p.ndim == 1]
optimizer = torch.optim.AdamW([{"params": decayed}, {"params": free, "weight_decay": 0.0}], lr=0.003)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.005, total_steps=15 * 7)

losses = []
for _epoch in range(15):
    for index in torch.randperm(len(features)).split(64):
        loss = nn.functional.huber_loss(model(features[index]), targets[index])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=2.0)
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())

print(scheduler.get_last_lr())
fingerprint(model, optimizer, losses=losses)
