"""A recurrent network learns to sum a signal over forty time steps, without gradient clipping.

The gradient comes back through forty products with the recurrent matrix. As soon as training has
made that matrix large enough to remember, it is also large enough to make the gradient explode: the
cliff of Pascanu et al. (2013), reached at about step 39. Clipping is their remedy.
"""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"line_contains": "optimizer.step()"}


class Summer(nn.Module):
    def __init__(self, hidden: int = 32) -> None:
        super().__init__()
        self.rnn = nn.RNN(2, hidden, batch_first=True, nonlinearity="relu")
        self.out = nn.Linear(hidden, 1)
        with torch.no_grad():
            self.rnn.weight_hh_l0.copy_(0.8 * torch.eye(hidden))
            self.rnn.weight_ih_l0.normal_(std=0.05)
            self.rnn.bias_ih_l0.zero_()
            self.rnn.bias_hh_l0.zero_()

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        states, _ = self.rnn(signal)
        return self.out(states[:, -1]).squeeze(1)


def signals(count: int, length: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    """Noise beside an empty channel; the answer is the sum, scaled to unit variance."""
    noise = torch.randn(count, length, 1)
    return torch.cat([noise, torch.zeros_like(noise)], dim=-1), noise.sum(dim=(1, 2)) / length**0.5


def train(clip: bool) -> list[float]:
    torch.manual_seed(0)
    model = Summer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    losses = []
    for _step in range(120):
        signal, total = signals(32)
        loss = nn.functional.mse_loss(model(signal), total)
        optimizer.zero_grad()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(clip=False)


def healthy() -> list[float]:
    return train(clip=True)
