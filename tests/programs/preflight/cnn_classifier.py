"""A convolutional network on digits: loader, dropout, Adam."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
        )
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(32 * 4 * 4, 10)

    def forward(self, images):
        return self.head(self.dropout(self.features(images).flatten(1)))


torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
images = (images - images.mean()) / images.std()
labels = torch.tensor(digits.target)
loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for _ in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
