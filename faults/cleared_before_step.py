"""A character language model: `zero_grad()` comes between `backward()` and `step()`."""

from __future__ import annotations

import torch
from torch import nn

CHECK = "missing-backward"
EXPECT = {"line_contains": "optimizer.step()"}
TEXT = "the thread that ariadne gave led theseus back out of the labyrinth of the minotaur. " * 12


class CharModel(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(size, 24)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.out = nn.Linear(48, size)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.rnn(self.embed(tokens))
        return self.out(states)


def train(clear_first: bool) -> list[float]:
    torch.manual_seed(2)
    letters = sorted(set(TEXT))
    tokens = torch.tensor([letters.index(c) for c in TEXT])
    model = CharModel(len(letters))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _step in range(60):
        starts = torch.randint(len(tokens) - 33, (16,))
        chunk = torch.stack([tokens[s : s + 33] for s in starts])
        logits = model(chunk[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), chunk[:, 1:].flatten())
        if clear_first:
            optimizer.zero_grad()
        loss.backward()
        if not clear_first:
            optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(clear_first=False)


def healthy() -> list[float]:
    return train(clear_first=True)
