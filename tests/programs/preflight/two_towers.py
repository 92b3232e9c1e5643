"""Two encoders trained to match: each sample is distinguished from all others in its batch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tower(nn.Module):
    def __init__(self, inputs, outputs=16):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, outputs))

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.queries, self.items = Tower(20), Tower(30)
        self.temperature = nn.Parameter(torch.tensor(0.0))

    def forward(self, query, item):
        return self.queries(query) @ self.items(item).T * (self.temperature.exp() * 5)


torch.manual_seed(0)
meaning = torch.randn(1024, 6)
queries = torch.tanh(meaning @ torch.randn(6, 20)) + 0.1 * torch.randn(1024, 20)
items = torch.tanh(meaning @ torch.randn(6, 30)) + 0.1 * torch.randn(1024, 30)
loader = DataLoader(TensorDataset(queries, items), batch_size=32, shuffle=True)
model = Matcher()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(3):
    for query, item in loader:
        scores = model(query, item)
        own = torch.arange(len(scores))
        loss = (F.cross_entropy(scores, own) + F.cross_entropy(scores.T, own)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
