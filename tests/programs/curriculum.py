"""Easy samples first, in order, on purpose; the user says so."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import clew

clew.ignore("unshuffled-data", why="short sequences first")
torch.manual_seed(63)

length = torch.arange(4, 36).repeat_interleave(24)
steps = torch.arange(36)
signal = torch.randn(len(length), 36) * (steps < length[:, None])
parity = ((signal > 0).sum(1) > length / 2).long()
loader = DataLoader(TensorDataset(signal[..., None], parity), batch_size=32, shuffle=False)


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.out = nn.Linear(24, 2)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        states, _ = self.gru(sequence)
        return self.out(states.mean(1))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for _epoch in range(5):
    for sequence, label in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(sequence), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
