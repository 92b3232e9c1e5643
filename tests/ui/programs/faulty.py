"""Forgets zero_grad, and has layers whose names would be programs if a page took them for such."""

import sys

import torch
from torch import nn

import clew

HOSTILE = "<script>alert(1)</script>"
UNUSED = "<img src=x onerror=alert(2)>"  # in no forward: a finding names it


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 32)
        self.add_module(HOSTILE, nn.Linear(32, 32))
        self.add_module(UNUSED, nn.Linear(4, 4))
        self.last = nn.Linear(32, 4)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.relu(getattr(self, HOSTILE)(x))
        return self.last(x)


def main(steps=240, lr=0.05):
    torch.manual_seed(0)
    x = torch.randn(512, 16)
    y = (x[:, :4] + 0.5 * torch.randn(512, 4)).argmax(dim=1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    done = 0
    while done < steps:
        for batch, labels in loader:
            scores = model(batch)
            loss = nn.functional.cross_entropy(scores, labels)
            loss.backward()
            optimizer.step()
            clew.log(accuracy=(scores.argmax(dim=1) == labels).float().mean().item())
            done += 1


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
