"""Sequences of different lengths, packed, through a bidirectional GRU."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence


class Counter(nn.Module):
    """Whether a sequence has more ups than downs."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, 1)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, last = self.gru(packed)
        return self.out(torch.cat([last[0], last[1]], dim=1)).squeeze(1)


torch.manual_seed(16)
model = Counter()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
losses = []
for _step in range(80):
    lengths = torch.randint(3, 13, (32,))
    sequences = [torch.randint(1, 6, (int(n),)) for n in lengths]
    label = torch.stack([((s > 3).sum() > (s < 3).sum()).float() for s in sequences])
    loss = nn.functional.binary_cross_entropy_with_logits(
        model(pad_sequence(sequences, batch_first=True), lengths), label
    )
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
