"""A recommender of two models, one for users and one for items, compared by their cosine.

The vectors are divided by their length. One item has no features at all: a vector of zeros has
length 0, and 0 / 0 is NaN. `F.normalize` keeps the length away from zero.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

CHECK = "non-finite"
EXPECT = {"line_contains": "vector / vector.norm", "op": "div", "phase": "forward", "module": "items"}


class UserTower(nn.Module):
    def __init__(self, users: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(users, width)

    def forward(self, user: torch.Tensor) -> torch.Tensor:
        return F.normalize(self.table(user), dim=1)


class ItemTower(nn.Module):
    def __init__(self, features: int, width: int, safe: bool) -> None:
        super().__init__()
        self.safe = safe
        self.hidden = nn.Linear(features, 64, bias=False)
        self.out = nn.Linear(64, width, bias=False)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        vector = self.out(torch.tanh(self.hidden(features)))
        if self.safe:
            return F.normalize(vector, dim=1)
        return vector / vector.norm(dim=1, keepdim=True)


def clicks(count: int, taste: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    user = torch.randint(len(taste), (count,))
    features = torch.randn(count, taste.shape[1])
    return user, features, ((features * taste[user]).sum(dim=1) > 0).float()


def train(safe: bool) -> list[float]:
    torch.manual_seed(0)
    taste = torch.randn(20, 8)
    users, items = UserTower(20, 16), ItemTower(8, 16, safe)
    optimizer = torch.optim.Adam([*users.parameters(), *items.parameters()], lr=0.01)
    losses = []
    for step in range(150):
        user, features, clicked = clicks(64, taste)
        if step == 60:
            features[5] = 0.0
        score = 5 * (users(user) * items(features)).sum(dim=1)
        loss = F.binary_cross_entropy_with_logits(score, clicked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(safe=False)


def healthy() -> list[float]:
    return train(safe=True)
