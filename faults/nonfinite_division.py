"""A tagger predicts hidden tokens: each is hidden with probability 3%, and the loss is the mean over them.

The batches are small, and sooner or later nothing is hidden in one of them: 0 / 0.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

CHECK = "non-finite"
EXPECT = {"line_contains": "hidden.sum()", "op": "div", "phase": "forward"}

HIDE = 0  # the token that stands for a hidden one


class Tagger(nn.Module):
    def __init__(self, vocabulary: int = 12, width: int = 48) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.rnn(self.tokens(tokens))
        return self.out(states)


def counting(count: int = 8, length: int = 16) -> torch.Tensor:
    """Sequences that count upwards: what is hidden can be told from its neighbours."""
    return (torch.randint(11, (count, 1)) + torch.arange(length)) % 11 + 1


def train(at_least_one: bool) -> list[float]:
    torch.manual_seed(2)
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _step in range(150):
        tokens = counting()
        hidden = torch.rand(tokens.shape) < 0.03
        scores = model(tokens.masked_fill(hidden, HIDE))
        each = F.cross_entropy(scores.transpose(1, 2), tokens, reduction="none")
        loss = (each * hidden).sum() / (hidden.sum().clamp(min=1) if at_least_one else hidden.sum())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(at_least_one=False)


def healthy() -> list[float]:
    return train(at_least_one=True)
