"""House prices in dollars, used as targets without normalisation."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EXPECT = {"line_contains": "mse_loss"}


class Prices(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.price = nn.Linear(64, 1)

    def forward(self, house: torch.Tensor) -> torch.Tensor:
        return self.price(self.body(house)).squeeze(1)


def houses(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Area, rooms, age, distance, garden; standardised already."""
    house = torch.randn(count, 5)
    price = 240_000 + house @ torch.tensor([60_000.0, 15_000.0, -12_000.0, -25_000.0, 9_000.0])
    return house, price + 8_000 * torch.randn(count)


def train(scale: bool) -> list[float]:
    torch.manual_seed(0)
    house, price = houses(512)
    if scale:
        price = (price - price.mean()) / price.std()
    loader = DataLoader(TensorDataset(house, price), batch_size=32, shuffle=True)
    model = Prices()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    losses = []
    for _epoch in range(6):
        for batch, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(batch), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(scale=False)


def healthy() -> list[float]:
    return train(scale=True)
