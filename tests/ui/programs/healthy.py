"""Nothing wrong: learns, and is evaluated after every epoch."""

import argparse

import torch
from torch import nn

import clew

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.003)
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--width", type=int, default=48)
options = parser.parse_args()

torch.manual_seed(0)
x = torch.randn(1024, 16)
y = (x[:, :4] + 0.3 * torch.randn(1024, 4)).argmax(dim=1)
data = torch.utils.data.TensorDataset
train = torch.utils.data.DataLoader(data(x[:768], y[:768]), batch_size=32, shuffle=True)
held_out = torch.utils.data.DataLoader(data(x[768:], y[768:]), batch_size=64)
model = nn.Sequential(nn.Linear(16, options.width), nn.ReLU(), nn.Linear(options.width, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=options.epochs)

for _ in range(options.epochs):
    model.train()
    for batch, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        scores = [(model(batch), labels) for batch, labels in held_out]
        loss = sum(nn.functional.cross_entropy(s, t) for s, t in scores) / len(scores)
        right = sum((s.argmax(dim=1) == t).float().mean() for s, t in scores) / len(scores)
    clew.log(accuracy=right.item(), held_out_loss=loss.item())
