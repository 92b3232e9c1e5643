"""Everything in float64, by the default dtype."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(34)
torch.set_default_dtype(torch.float64)


class Potential(nn.Module):
    """A spring's energy; its force is the derivative, taken inside the forward."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, place: torch.Tensor) -> torch.Tensor:
        place = place.requires_grad_()
        energy = self.net(place).sum()
        return -torch.autograd.grad(energy, place, create_graph=True)[0]


model = Potential()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
losses = []
for _step in range(100):
    place = torch.randn(48, 2)
    force = -place * torch.tensor([1.0, 0.5])
    loss = nn.functional.mse_loss(model(place.clone()), force)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

fingerprint(model, optimizer, losses=losses)
