"""A small U-Net that finds discs in noisy images, pixel by pixel."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Discs(Dataset):
    def __init__(self, count, size=16):
        self.count, self.size = count, size

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        centre = torch.rand(2, generator=generator) * 8 + 4
        radius = float(torch.rand((), generator=generator)) * 2 + 2.5
        rows, columns = torch.meshgrid(torch.arange(self.size), torch.arange(self.size), indexing="ij")
        mask = ((rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < radius**2).float()
        image = mask * 1.5 + 0.5 * torch.randn(self.size, self.size, generator=generator)
        return image.unsqueeze(0), mask.unsqueeze(0)


def double(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True),
        nn.Conv2d(outside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = double(1, 4), double(4, 8), double(8, 12)
        self.pool = nn.MaxPool2d(2)
        self.rise2 = nn.ConvTranspose2d(12, 8, 2, stride=2)
        self.rise1 = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.up2, self.up1 = double(16, 8), double(8, 4)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(self.pool(one))
        bottom = self.bottom(self.pool(two))
        up = self.up2(torch.cat([two, self.rise2(bottom)], 1))
        return self.out(self.up1(torch.cat([one, self.rise1(up)], 1)))


torch.manual_seed(0)
loader = DataLoader(Discs(256), batch_size=8, shuffle=True)
unet = UNet()
optimizer = torch.optim.AdamW(unet.parameters(), lr=4e-3)
criterion = nn.BCEWithLogitsLoss()
for _ in range(2):
    unet.train()
    for images, masks in loader:
        loss = criterion(unet(images), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
