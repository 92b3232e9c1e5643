"""A graph network under float16 autocast adds up the messages of all neighbours, three times.

With twelve neighbours each round multiplies the values by up to twelve: after the third they are a factor of
three below 65504, the float16 limit. The mean over the neighbours keeps their size.
"""

from __future__ import annotations

import torch
from torch import nn

EXPECT = {"module": "rounds.2"}


class Round(nn.Module):
    """One exchange of messages between neighbours."""

    def __init__(self, width: int, average: bool) -> None:
        super().__init__()
        self.average = average
        self.message = nn.Linear(width, width)

    def forward(self, nodes: torch.Tensor, neighbours: torch.Tensor) -> torch.Tensor:
        near = nodes[torch.arange(len(nodes))[:, None, None], neighbours]
        gathered = near.mean(dim=2) if self.average else near.sum(dim=2)
        return nn.functional.leaky_relu(self.message(gathered), 0.2)


class GraphNetwork(nn.Module):
    def __init__(self, average: bool, width: int = 32) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.rounds = nn.ModuleList(Round(width, average) for _ in range(3))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)
        for layer in (self.first, *(r.message for r in self.rounds)):
            nn.init.kaiming_normal_(layer.weight)

    def forward(self, nodes: torch.Tensor, neighbours: torch.Tensor) -> torch.Tensor:
        nodes = self.first(nodes)
        for exchange in self.rounds:
            nodes = exchange(nodes, neighbours)
        return self.out(self.norm(nodes).mean(dim=1)).squeeze(1)


def graphs(
    count: int = 16, size: int = 32, degree: int = 12
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Clouds of points around a hidden centre, which is the target."""
    centre = torch.randn(count, 1, 4)
    nodes = centre + 0.5 * torch.randn(count, size, 4)
    return nodes, torch.rand(count, size, size).topk(degree, dim=2).indices, centre[:, 0, 0]


def train(average: bool) -> list[float]:
    torch.manual_seed(0)
    model = GraphNetwork(average)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _step in range(60):
        nodes, neighbours, wanted = graphs()
        with torch.autocast("cpu", dtype=torch.float16):
            predicted = model(nodes, neighbours)
        loss = nn.functional.mse_loss(predicted.float(), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(average=False)


def healthy() -> list[float]:
    return train(average=True)
