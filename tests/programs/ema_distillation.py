"""A student learns from labels and from a teacher that is its own moving average."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from fingerprint import fingerprint
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(19)
digits = load_digits()
images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
labels = torch.tensor(digits.target)
student = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
teacher = copy.deepcopy(student).eval()
for parameter in teacher.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

losses = []
for _epoch in range(4):
    for index in torch.randperm(len(images)).split(64):
        image = images[index]
        with torch.no_grad():
            soft = F.softmax(teacher(image + 0.1 * torch.randn_like(image)) / 2, dim=1)
        scores = student(image)
        agreement = F.kl_div(F.log_softmax(scores / 2, dim=1), soft, reduction="batchmean")
        loss = F.cross_entropy(scores, labels[index]) + 0.5 * agreement
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.lerp_(fast, 0.05)
            for slow, fast in zip(teacher.buffers(), student.buffers(), strict=True):
                slow.copy_(fast)

fingerprint(student, teacher, optimizer, losses=losses)
