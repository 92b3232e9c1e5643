"""A character model trained on windows of a text: overlapping windows are split at random."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset, random_split

EXPECT = {"line_contains": "DataLoader(val", "says": "nearly the same as samples of train_loader"}
STORY = "the sea was calm and grey that morning when we left harbour for islands no one had named yet"


class Windows(Dataset[tuple[Tensor, Tensor]]):
    """64 letters and the next ones, starting at every eighth letter."""

    def __init__(self, text: str, length: int = 64, stride: int = 8) -> None:
        letters = sorted(set(text))
        self.text = torch.tensor([letters.index(letter) for letter in text])
        self.length, self.stride = length, stride

    def __len__(self) -> int:
        return (len(self.text) - self.length - 1) // self.stride

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        part = self.text[index * self.stride : index * self.stride + self.length + 1]
        return part[:-1], part[1:]


class Letters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(32, 16)
        self.rnn = nn.GRU(16, 32, batch_first=True)
        self.out = nn.Linear(32, 32)

    def forward(self, letters: Tensor) -> Tensor:
        return self.out(self.rnn(self.embed(letters))[0])


def train(apart: bool) -> list[float]:
    torch.manual_seed(0)
    drawn = random.Random(0)
    windows = Windows(" ".join(drawn.choice(STORY.split()) for _ in range(1600)))
    cut = int(0.8 * len(windows))
    if apart:
        train, val = Subset(windows, range(cut)), Subset(windows, range(cut + 8, len(windows)))
    else:
        train, val = random_split(windows, [cut, len(windows) - cut])
    train_loader = DataLoader(train, batch_size=32, shuffle=True)
    val_loader = DataLoader(val, batch_size=32)
    model, losses = Letters(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for letters, following in train_loader:
        loss = nn.functional.cross_entropy(model(letters).transpose(1, 2), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        for letters, _following in val_loader:
            model(letters)
    return losses


def buggy() -> list[float]:
    return train(apart=False)


def healthy() -> list[float]:
    return train(apart=True)
