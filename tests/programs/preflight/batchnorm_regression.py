"""Regression on tabular data, standardised, with batch normalisation and SGD."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
np.random.seed(0)
data = load_diabetes()
features = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
wanted = (data.target - data.target.mean()) / data.target.std()
target = torch.tensor(wanted, dtype=torch.float32).unsqueeze(1)
train = DataLoader(TensorDataset(features[:352], target[:352]), batch_size=32, shuffle=True, drop_last=True)
model = nn.Sequential(
    nn.Linear(10, 32, bias=False),
    nn.BatchNorm1d(32),
    nn.ReLU(),
    nn.Linear(32, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
criterion = nn.MSELoss()
for _ in range(8):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        validation = criterion(model(features[352:]), target[352:])
print(f"validation {validation.item():.3f}")
