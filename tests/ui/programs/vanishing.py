"""A deep network of sigmoids without normalisation: next to no gradient arrives at its first layers."""

import torch
from torch import nn

torch.manual_seed(0)
DEPTH = 14


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.hidden = nn.ModuleList(nn.Linear(32, 32) for _ in range(DEPTH))
        self.head = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.sigmoid(self.first(x))
        for layer in self.hidden:
            x = torch.sigmoid(layer(x))
        return self.head(x)


x = torch.randn(512, 16)
y = x[:, :4].argmax(dim=1)
data = torch.utils.data.TensorDataset(x, y)
loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
model = Deep()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for _ in range(8):
    for batch, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()
