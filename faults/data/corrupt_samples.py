"""Pictures as PNG files, some of which were cut off when the disk was full."""

from __future__ import annotations

import io

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

EXPECT = {"line_contains": "convert(", "says": "3 samples of 400 can't be read"}
CUT_OFF = (397, 398, 399)


class Pictures(Dataset[tuple[Tensor, int]]):
    """Stripes, vertical or horizontal."""

    def __init__(self, cut_off: tuple[int, ...]) -> None:
        drawn = np.random.default_rng(0)
        self.labels = drawn.integers(0, 2, 400).tolist()
        self.files = [self._file(drawn, label) for label in self.labels]
        for index in cut_off:
            self.files[index] = self.files[index][: len(self.files[index]) // 2]

    @staticmethod
    def _file(drawn: np.random.Generator, label: int) -> bytes:
        picture = drawn.integers(0, 60, (16, 16, 3), dtype=np.uint8)
        stripes = slice(int(drawn.integers(0, 4)), None, 4)
        picture[(stripes, slice(None)) if label else (slice(None), stripes)] += 180
        file = io.BytesIO()
        Image.fromarray(picture).save(file, "PNG")
        return file.getvalue()

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        picture = Image.open(io.BytesIO(self.files[index])).convert("RGB")
        return torch.from_numpy(np.array(picture)).permute(2, 0, 1) / 127.5 - 1, self.labels[index]


def train(cut_off: tuple[int, ...]) -> list[float]:
    torch.manual_seed(0)
    loader = DataLoader(Pictures(cut_off), batch_size=32)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 5), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(8, 2)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for picture, label in loader:
        loss = nn.functional.cross_entropy(model(picture), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def buggy() -> list[float]:
    return train(CUT_OFF)


def healthy() -> list[float]:
    return train(())
