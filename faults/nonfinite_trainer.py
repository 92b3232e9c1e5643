"""A trainer with one method for the loss, one for the backward pass and one for the update, as is common.

The loss adds an entropy, `p * log(p)`, that is NaN where a probability is exactly 0, as for one outlier in
the measurements. The method that calls `backward()` does not see it. `log_softmax` does not overflow.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

CHECK = "non-finite"
EXPECT = {"line_contains": "torch.log(p)", "op": "log", "phase": "forward"}


class Trainer:
    def __init__(self, safe: bool) -> None:
        self.model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        self.safe = safe
        self.steps = 0
        self.last_entropy = torch.zeros(())
        self.losses: list[float] = []

    def compute_loss(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = batch
        scores = self.model(x)
        p = torch.softmax(scores, dim=1)
        logs = torch.log_softmax(scores, dim=1) if self.safe else torch.log(p)
        self.last_entropy = -(p * logs).sum(dim=1).mean()
        return F.cross_entropy(scores, y) - 0.01 * self.last_entropy

    def backward(self, loss: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        self.steps += 1
        loss = self.compute_loss(batch)
        self.backward(loss)
        self.optimizer.step()
        self.losses.append(loss.item())


def train(safe: bool) -> list[float]:
    torch.manual_seed(0)
    trainer, centres = Trainer(safe), torch.randn(3, 6)
    for step in range(100):
        y = torch.randint(3, (32,))
        x = centres[y] + 0.5 * torch.randn(32, 6)
        if step == 60:
            x[5] *= 400.0
        trainer.training_step((x, y))
    return trainer.losses


def buggy() -> list[float]:
    return train(safe=False)


def healthy() -> list[float]:
    return train(safe=True)
