"""A stream without length or index: an IterableDataset of noisy waves."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from fingerprint import fingerprint
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Waves(IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    """Fast and slow sines of random phase."""

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for _ in range(3200):
            fast = torch.randint(2, ())
            t = torch.linspace(0, 6, 32) * (1 + fast) + torch.rand(()) * 6
            yield torch.sin(t).unsqueeze(0) + 0.2 * torch.randn(1, 32), fast


def main() -> None:
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv1d(1, 8, 5), nn.ReLU(), nn.Conv1d(8, 8, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(96, 2)
    )
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.001)
    losses = []
    for wave, fast in DataLoader(Waves(), batch_size=32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(wave), fast)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    fingerprint(model, optimizer, losses=losses)


if __name__ == "__main__":
    main()
