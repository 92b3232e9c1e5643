"""Training inside a class, with the step in a method of its own."""

from __future__ import annotations

import torch
from fingerprint import fingerprint
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(inplace=True),
        )
        self.classifier = nn.Linear(12 * 4 * 4, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(image).flatten(1))


class Trainer:
    def __init__(self, model: nn.Module, loader: DataLoader[tuple[torch.Tensor, ...]]) -> None:
        self.model = model
        self.loader = loader
        self.loss_function = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
        self.history: list[float] = []

    def fit(self, epochs: int) -> None:
        for _epoch in range(epochs):
            self.model.train()
            for image, label in self.loader:
                self.history.append(self.training_step(image, label))

    def training_step(self, image: torch.Tensor, label: torch.Tensor) -> float:
        self.optimizer.zero_grad()
        loss = self.loss_function(self.model(image), label)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main() -> None:
    torch.manual_seed(1)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=48, shuffle=True)
    trainer = Trainer(ConvNet(), loader)
    trainer.fit(3)
    fingerprint(trainer.model, trainer.optimizer, losses=trainer.history)


if __name__ == "__main__":
    main()
