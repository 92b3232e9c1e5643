"""Matrix factorisation of ratings with a cosine schedule that is never stepped."""

from __future__ import annotations

import torch
from torch import nn

CHECK = "scheduler-stuck"
EXPECT = {"line_contains": "CosineAnnealingLR("}
USERS, ITEMS, EPOCHS = 50, 40, 12


class Factors(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.user = nn.Embedding(USERS, 6)
        self.item = nn.Embedding(ITEMS, 6)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        return (self.user(user) * self.item(item)).sum(dim=1)


def train(step_scheduler: bool) -> list[float]:
    torch.manual_seed(16)
    ratings = torch.randn(USERS, 3) @ torch.randn(3, ITEMS)
    user, item = torch.randint(USERS, (1024,)), torch.randint(ITEMS, (1024,))
    model = Factors()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    losses = []
    for _epoch in range(EPOCHS):
        for index in torch.randperm(1024).split(128):
            loss = nn.functional.mse_loss(model(user[index], item[index]), ratings[user[index], item[index]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if step_scheduler:
            scheduler.step()
    return losses


def buggy() -> list[float]:
    return train(step_scheduler=False)


def healthy() -> list[float]:
    return train(step_scheduler=True)
