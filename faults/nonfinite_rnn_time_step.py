"""A recurrent cell with an exponential gate, unrolled by hand over thirty time steps.

The state feeds the gate and the gate multiplies the state: late in the sequence the exponential
leaves float32. The line is right for the first time steps; which one breaks is the question.
"""

from __future__ import annotations

import torch
from torch import nn

CHECK = "non-finite"
EXPECT = {"line_contains": "torch.exp(", "op": "exp", "phase": "forward", "module": "cell", "says": "of 30"}


class GatedCell(nn.Module):
    def __init__(self, inputs: int, width: int, bounded: bool) -> None:
        super().__init__()
        self.bounded = bounded
        self.mix = nn.Linear(inputs, width)
        self.gate = nn.Linear(width, width, bias=False)
        nn.init.normal_(self.gate.weight, std=0.02)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        opening = self.gate(state)
        if self.bounded:
            opening = -nn.functional.softplus(opening)
        return torch.exp(opening) * state + self.mix(x)


class SequenceSummer(nn.Module):
    def __init__(self, bounded: bool, width: int = 24) -> None:
        super().__init__()
        self.width = width
        self.cell = GatedCell(3, width, bounded)
        self.out = nn.Linear(width, 1)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(sequence.shape[0], self.width)
        for time in range(sequence.shape[1]):
            state = self.cell(sequence[:, time], state)
        return self.out(state).squeeze(1)


def train(bounded: bool) -> list[float]:
    torch.manual_seed(0)
    model = SequenceSummer(bounded)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _step in range(80):
        sequence = torch.randn(32, 30, 3)
        wanted = sequence[:, -4:, 0].sum(dim=1) / 2
        loss = nn.functional.mse_loss(model(sequence), wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(bounded=False)


def healthy() -> list[float]:
    return train(bounded=True)
