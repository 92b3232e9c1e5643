"""A small convolutional network on pictures of a bright square, which it learns to place."""

import torch
from torch import nn

torch.manual_seed(0)


def pictures(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    place = torch.randint(0, 4, (count,))
    images = 0.2 * torch.randn(count, 1, 12, 12)
    for image, where in zip(images, place.tolist(), strict=True):
        row, column = 6 * (where // 2), 6 * (where % 2)
        image[0, row : row + 6, column : column + 6] += 1
    return images, place


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        )  # fmt: skip
        self.classify = nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classify(self.features(x).flatten(1))


loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(*pictures(640)), batch_size=32, shuffle=True
)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for _ in range(6):
    for batch, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), labels).backward()
        optimizer.step()
