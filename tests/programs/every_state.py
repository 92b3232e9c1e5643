"""All that a program can carry from step to step: generators, buffers, modes, workers, a schedule."""

from __future__ import annotations

import random

import numpy as np
import torch
from fingerprint import fingerprint
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    """Draws from numpy's and Python's generators for every sample."""

    def __init__(self, count: int) -> None:
        generator = torch.Generator().manual_seed(5)
        self.x = torch.randn(count, 12, generator=generator)
        self.y = (self.x[:, :4].sum(1) > 0).long() + (self.x[:, 4:8].sum(1) > 0).long()

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        noise = torch.from_numpy(np.random.normal(0, 0.05, 12).astype(np.float32))
        return self.x[index] * random.uniform(0.9, 1.1) + noise, self.y[index]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 24, bias=False)
        self.norm = nn.BatchNorm1d(24)
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(24, 3)
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.seen += len(x)
            self.calls += 1
        return self.out(self.dropout(torch.relu(self.norm(self.first(x)))))


def seeded(worker: int) -> None:
    np.random.seed(worker)
    random.seed(worker)


torch.manual_seed(3)
data = Noisy(512)
shuffled = DataLoader(
    data,
    batch_size=32,
    shuffle=True,
    num_workers=2,
    worker_init_fn=seeded,
    generator=torch.Generator().manual_seed(11),
)
plain = DataLoader(data, batch_size=32, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 80)
losses: list[float] = []
for epoch in range(4):
    model.train()
    for x, y in shuffled if epoch % 2 == 0 else plain:
        x = x * random.uniform(0.95, 1.05) + torch.from_numpy(np.random.normal(0, 0.02, (1, 12))).float()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        right = int((model(data.x).argmax(1) == data.y).sum())
    print(epoch, right, int(model.seen), model.calls)
fingerprint(model, optimizer, losses=losses)
