"""Sentiment of sentences of very different lengths, batched as they come: most of a batch is padding."""

from __future__ import annotations

import random
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "DataLoader(", "says": "padding"}
SEVERITY = "advice"


class Sentences(Dataset[tuple[Tensor, int]]):
    """Words below 50 are positive, others negative; a few sentences are ten times as long as most."""

    def __init__(self, count: int = 1200) -> None:
        drawn = torch.Generator().manual_seed(0)
        lengths = (
            6 + torch.distributions.LogNormal(2.5, 0.9).icdf(torch.rand(count, generator=drawn))
        ).long()
        self.labels = torch.randint(0, 2, (count,), generator=drawn)
        self.words = [
            torch.randint(1, 60, (n,), generator=drawn) + 40 * int(y)
            for n, y in zip(lengths.clamp(max=150).tolist(), self.labels, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.words[index], int(self.labels[index])


class LikeLengths:
    """Batches of sentences of similar length, in a random order."""

    def __init__(self, data: Sentences, size: int) -> None:
        self._lengths = [len(words) for words in data.words]
        self._size = size

    def __len__(self) -> int:
        return len(self._lengths) // self._size

    def __iter__(self) -> Iterator[list[int]]:
        order = random.sample(range(len(self._lengths)), len(self._lengths))
        order.sort(key=self._lengths.__getitem__)
        batches = [order[n : n + self._size] for n in range(0, len(order), self._size)]
        random.shuffle(batches)
        yield from batches


def collate(samples: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
    words, labels = zip(*samples, strict=True)
    return pad_sequence(list(words), batch_first=True), torch.tensor(labels)


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 32, padding_idx=0)
        self.layer = nn.Sequential(nn.Linear(32, 64), nn.ReLU())
        self.head = nn.Linear(64, 2)

    def forward(self, words: Tensor) -> Tensor:
        there = (words != 0).unsqueeze(-1)
        read = self.layer(self.embed(words)) * there
        return self.head(read.sum(1) / there.sum(1))


def train(loader: DataLoader[tuple[Tensor, Tensor]]) -> list[float]:
    torch.manual_seed(0)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(2):
        for words, labels in loader:
            loss = nn.functional.cross_entropy(model(words), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(DataLoader(Sentences(), batch_size=32, shuffle=True, collate_fn=collate))


def healthy() -> list[float]:
    data = Sentences()
    return train(DataLoader(data, batch_sampler=LikeLengths(data, 32), collate_fn=collate))
