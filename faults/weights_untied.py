"""A language model ties output and embedding, then gets word vectors: the tie is gone."""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"module": "embed"}
WORDS, WIDTH = 40, 32


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, WORDS, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.rnn(self.embed(tokens))
        return self.out(states)


def train(tie_again: bool) -> list[float]:
    torch.manual_seed(12)
    sentences = (torch.arange(12) * torch.randint(1, 4, (256, 1)) + torch.randint(WORDS, (256, 1))) % WORDS
    vectors = 0.1 * torch.randn(WORDS, WIDTH)
    model = LanguageModel()
    model.embed = nn.Embedding.from_pretrained(vectors, freeze=False)
    if tie_again:
        model.out.weight = model.embed.weight
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _epoch in range(10):
        for batch in sentences[torch.randperm(256)].split(32):
            logits = model(batch[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(tie_again=False)


def healthy() -> list[float]:
    return train(tie_again=True)
