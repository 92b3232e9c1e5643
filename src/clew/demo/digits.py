"""Handwritten digits, learned by a small network. It trains, but badly: two faults are planted."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 10


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return torch.softmax(self.head(self.hidden(x)), dim=1)


def load():
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32)
    x = (x - x.mean()) / x.std()
    data = TensorDataset(x, torch.tensor(digits.target))
    return torch.utils.data.random_split(data, [1500, len(data) - 1500])


def train(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def main():
    torch.manual_seed(0)
    training, held_out = load()
    loader = DataLoader(training, batch_size=50, shuffle=True)
    test_loader = DataLoader(held_out, batch_size=100)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        loss = train(model, loader, optimizer, criterion)
        print(f"epoch {epoch}: loss {loss:.3f}, test accuracy {accuracy(model, test_loader):.1%}")


if __name__ == "__main__":
    main()
