"""A classifier learns from the votes of thirty annotators, with the KL divergence written out by hand.

Almost every image has a vote for every class. One has none for one class: log(0) is -inf, and
multiplied by the weight 0 it gives NaN, not 0. `torch.xlogy` defines 0 · log 0 as 0.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CHECK = "non-finite"
EXPECT = {"line_contains": "votes.log()", "op": "log", "phase": "forward"}


def annotated(count: int = 512) -> TensorDataset:
    features = torch.randn(count, 20)
    scores = features @ torch.randn(20, 3) * 0.5
    votes = torch.distributions.Multinomial(27, logits=scores).sample() + 1  # each class has one at least
    votes[100] = torch.tensor([20.0, 10.0, 0.0])
    return TensorDataset(features, votes / votes.sum(dim=1, keepdim=True))


def train(by_hand: bool) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(annotated(), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _epoch in range(6):
        for features, votes in loader:
            predicted = torch.log_softmax(model(features), dim=1)
            entropy = votes * votes.log() if by_hand else torch.xlogy(votes, votes)
            loss = (entropy - votes * predicted).sum(dim=1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(by_hand=True)


def healthy() -> list[float]:
    return train(by_hand=False)
