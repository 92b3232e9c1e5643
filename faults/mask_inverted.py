"""Sentences of different lengths: the transformer gets a mask of the real words instead of the padding."""

from __future__ import annotations

import torch
from torch import nn

PAD = 0
EXPECT = {"line_contains": "self.encoder("}


class SentenceClassifier(nn.Module):
    def __init__(self, inverted: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 24, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(24, 2, 48, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(24, 2)
        self.inverted = inverted

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        padding = words == PAD
        hidden = self.encoder(
            self.embedding(words), src_key_padding_mask=~padding if self.inverted else padding
        )
        return self.head(hidden[:, 0])


def sentences(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    words = torch.randint(3, 40, (size, 10))
    answer = torch.randint(0, 2, (size,))
    words[torch.arange(size), torch.randint(0, 4, (size,))] = 1 + answer
    lengths = torch.randint(5, 9, (size, 1))
    return torch.where(torch.arange(10) < lengths, words, PAD), answer


def train(inverted: bool) -> list[float]:
    torch.manual_seed(0)
    model = SentenceClassifier(inverted)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for _step in range(90):
        words, answer = sentences(48)
        loss = nn.functional.cross_entropy(model(words), answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(inverted=True)


def healthy() -> list[float]:
    return train(inverted=False)
