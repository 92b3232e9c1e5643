"""A recurrent language model whose output layer shares its weight with the embedding."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

TEXT = "the thread leads back out of the labyrinth, and the ball of thread is called a clew. " * 12


class TiedModel(nn.Module):
    def __init__(self, words: int, width: int = 48) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=0.1, batch_first=True)
        self.out = nn.Linear(width, words)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.out.weight = self.embed.weight

    def forward(
        self, text: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor] | None
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        hidden, state = self.lstm(self.embed(text), state)
        return self.out(hidden), state


torch.manual_seed(20)
letters = sorted(set(TEXT))
codes = torch.tensor([letters.index(letter) for letter in TEXT])
streams = codes[: len(codes) // 8 * 8].view(8, -1)
model = TiedModel(len(letters))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

losses = []
for _epoch in range(8):
    state = None
    for start in range(0, streams.shape[1] - 13, 12):
        if state is not None:
            state = (state[0].detach(), state[1].detach())
        scores, state = model(streams[:, start : start + 12], state)
        loss = nn.functional.cross_entropy(scores.transpose(1, 2), streams[:, start + 1 : start + 13])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
