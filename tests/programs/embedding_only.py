"""Matrix factorisation: nothing but embeddings, and most rows have no gradient in a batch."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


class Ratings(nn.Module):
    def __init__(self, users: int, films: int, width: int = 8) -> None:
        super().__init__()
        self.users = nn.Embedding(users, width)
        self.films = nn.Embedding(films, width)
        self.bias = nn.Embedding(films, 1)
        for table in (self.users, self.films, self.bias):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, user: torch.Tensor, film: torch.Tensor) -> torch.Tensor:
        return (self.users(user) * self.films(film)).sum(dim=1) + self.bias(film).squeeze(1)


torch.manual_seed(41)
taste, style = torch.randn(80, 2), torch.randn(60, 2)
user, film = torch.randint(80, (3000,)), torch.randint(60, (3000,))
rating = (taste[user] * style[film]).sum(dim=1) * 0.7 + 0.1 * torch.randn(3000)
data = TensorDataset(user, film, rating)
sampler = BatchSampler(RandomSampler(data), batch_size=60, drop_last=False)
model = Ratings(80, 60)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

losses = []
for _epoch in range(3):
    for who, what, stars in DataLoader(data, sampler=sampler, batch_size=None):
        loss = nn.functional.mse_loss(model(who, what), stars)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
