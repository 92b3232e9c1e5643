"""A character model of two transformer layers, without a causal mask."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"line_contains": "self.encoder("}
TEXT = "ariadne gave theseus a clew of thread, and the clew led him back out of the labyrinth. " * 40
LETTERS = sorted(set(TEXT))


class CharacterModel(nn.Module):
    def __init__(self, masked: bool) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), 32)
        self.places = nn.Embedding(24, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, len(LETTERS))
        self.masked = masked

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        length = letters.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length) if self.masked else None
        hidden = self.letters(letters) + self.places(torch.arange(length))
        return self.head(self.encoder(hidden, mask=mask))


def train(masked: bool) -> list[float]:
    torch.manual_seed(0)
    text = torch.tensor([LETTERS.index(c) for c in TEXT])
    windows = text.unfold(0, 25, 2)
    model = CharacterModel(masked)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    losses = []
    for _step in range(120):
        window = windows[torch.randint(0, len(windows), (32,))]
        given, following = window[:, :-1], window[:, 1:]
        scores = model(given)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(masked=False)


def healthy() -> list[float]:
    return train(masked=True)
