"""Everything that Clew observes, in one loop, each several times."""

from __future__ import annotations

import io

import torch
from fingerprint import fingerprint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Gain(nn.Module):
    def __init__(self, units: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(units))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gain


def make() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 24), nn.ReLU(), Gain(24), nn.Dropout(0.1), nn.Linear(24, 3))


def train(epochs: int = 4) -> tuple[nn.Module, torch.optim.Optimizer, list[float]]:
    torch.manual_seed(50)
    rule = torch.randn(6, 3)
    features = torch.randn(320, 6)
    data = TensorDataset(features, (features @ rule).argmax(1))
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.8)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    losses = []
    for _epoch in range(epochs):
        model.train()
        for batch, label in DataLoader(data, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(batch), label)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            losses.append(loss.item())
        evaluate(model, optimizer, features)
    return model, optimizer, losses


def evaluate(model: nn.Module, optimizer: torch.optim.Optimizer, features: torch.Tensor) -> torch.Tensor:
    """Through a copy that is saved, loaded and compiled; the optimizer is copied along."""
    saved = io.BytesIO()
    torch.save([model.state_dict(), optimizer.state_dict()], saved)
    saved.seek(0)
    weights, momenta = torch.load(saved, weights_only=True)
    copy = make()
    copy.load_state_dict(weights)
    torch.optim.AdamW(copy.parameters()).load_state_dict(momenta)
    copy.eval()
    with torch.no_grad():
        return torch.compile(copy, backend="eager")(features)


if __name__ == "__main__":
    model, optimizer, losses = train()
    fingerprint(model, optimizer, losses=losses)
