"""Gradient accumulation over micro-batches, with the loss divided by their number; bfloat16 autocast."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 2


def main():
    torch.manual_seed(0)
    wine = load_wine()
    features = torch.tensor((wine.data - wine.data.mean(0)) / wine.data.std(0), dtype=torch.float32)
    labels = torch.tensor(wine.target)
    loader = DataLoader(TensorDataset(features, labels), batch_size=16, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    optimizer.zero_grad()
    done = 0
    for _ in range(12):
        for x, y in loader:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(x), y) / ACCUMULATE
            loss.backward()
            done += 1
            if done % ACCUMULATE == 0:
                optimizer.step()
                optimizer.zero_grad()
    print(f"loss {loss.item() * ACCUMULATE:.3f}")


if __name__ == "__main__":
    main()
