"""Policy gradient on a small corridor: the loss is noise around zero, of either sign."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from torch import nn

torch.manual_seed(40)
policy = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.005)


def play(length: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    """Walk a corridor of eight cells; every step on the last two cells earns one."""
    place, log_probabilities, rewards = 3, [], []
    for _ in range(length):
        here = nn.functional.one_hot(torch.tensor(place), 8).float() * 2 - 0.25
        choice = torch.distributions.Categorical(logits=policy(here))
        action = choice.sample()
        place = min(7, max(0, place + 2 * int(action) - 1))
        log_probabilities.append(choice.log_prob(action))
        rewards.append(float(place >= 6))
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    return torch.stack(log_probabilities), returns


baseline, scores = 0.0, []
for _episode in range(120):
    log_probabilities, returns = play()
    loss = -(log_probabilities * (returns - baseline)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    baseline = 0.9 * baseline + 0.1 * returns.mean().item()
    scores.append(returns[0].item())

fingerprint(policy, optimizer, losses=[-score for score in scores])
