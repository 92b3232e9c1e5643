"""A small transformer reads sequences of tokens with Adam at 0.3, a hundred times what it can take.

The first updates are larger than the weights; the loss jumps, falls back to chance and stays there.
By then the weights are so large that the updates look small beside them.
"""

from __future__ import annotations

import torch
from torch import nn

CHECK = "learning-rate-too-high"
EXPECT = {"line_contains": "optimizer.step()"}


class TokenClassifier(nn.Module):
    """Says which of two marked tokens comes first."""

    def __init__(self, vocabulary: int = 20, width: int = 32, length: int = 12) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.out = nn.Linear(width, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(self.encoder(self.tokens(tokens) + self.places).mean(dim=1))


def sequences(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(2, 20, (count, 12))
    first, second = torch.rand(count, 12).topk(2).indices.sort(dim=1).values.T
    label = torch.randint(2, (count,))
    rows = torch.arange(count)
    tokens[rows, first], tokens[rows, second] = label, 1 - label
    return tokens, label


def train(lr: float) -> list[float]:
    torch.manual_seed(0)
    model = TokenClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _step in range(120):
        tokens, label = sequences(64)
        loss = nn.functional.cross_entropy(model(tokens), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(lr=0.3)


def healthy() -> list[float]:
    return train(lr=0.003)
