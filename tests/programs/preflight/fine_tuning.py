"""A pretrained backbone with frozen layers and a new head; two groups with rates of their own."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.stage = nn.Sequential(nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU())

    def forward(self, x):
        return self.stage(self.stem(x)).mean((2, 3))


class Classifier(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.backbone(x))

    def train(self, mode=True):
        super().train(mode)
        self.backbone.stem.eval()  # what is frozen keeps its statistics
        return self


torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1)
images = (images - images.mean()) / images.std()
labels = torch.tensor(digits.target)
pretrained = Backbone()
with torch.no_grad():  # as if trained before: statistics that fit the data
    pretrained.train()
    for _ in range(20):
        pretrained(images[torch.randperm(len(images))[:128]])
model = Classifier(pretrained, 10)
for parameter in model.backbone.stem.parameters():
    parameter.requires_grad_(False)
model.train()
optimizer = torch.optim.AdamW(
    [
        {"params": model.backbone.stage.parameters(), "lr": 1e-3},
        {"params": model.head.parameters(), "lr": 1e-2},
    ],
    weight_decay=0.01,
)
loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
for _ in range(2):
    for batch in loader:
        x, y = (part.to("cpu", non_blocking=True) for part in batch)
        loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
