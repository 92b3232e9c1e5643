"""How long it takes to inspect a network, compared with torchinfo and torchlens on the same models.

    python -m benchmarks.inspection

Both are timed in the same process, in turn, after one call to warm up; the medians of a few rounds are
printed, and their ratio. `visit` computes nothing unless it is asked to, whereas torchlens always does:
both ways are timed, and a plain forward for comparison. A package that is not installed is listed as
such.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

import clew

ROUNDS = 7


class Bottleneck(nn.Module):
    def __init__(self, width: int, inner: int, stride: int) -> None:
        super().__init__()
        out = 4 * inner
        self.body = nn.Sequential(
            nn.Conv2d(width, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(),
            nn.Conv2d(inner, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        change = stride > 1 or width != out
        self.skip = nn.Sequential(nn.Conv2d(width, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        if not change:
            self.skip = nn.Sequential()
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.relu(self.body(x) + self.skip(x))
        return result


def resnet50() -> nn.Module:
    """As published: 25.6 million parameters, 8.2 GFLOPs for one image of 224 × 224."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    width = 64
    for inner, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(width, inner, stride if block == 0 else 1))
            width = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 24, enable_nested_tensor=False)


def seconds(*actions: Callable[[], Any]) -> list[float]:
    """The median of each."""
    spent: list[list[float]] = [[] for _ in actions]
    for number in range(ROUNDS + 1):
        for action, times in zip(actions, spent, strict=True):
            began = time.perf_counter()
            with redirect_stdout(io.StringIO()):
                action()
            if number > 0:
                times.append(time.perf_counter() - began)
    return [median(times) for times in spent]


def compare(what: str, ours: Callable[[], Any], package: str, theirs: Callable[[Any], Any]) -> None:
    try:
        other = import_module(package)
    except ImportError:
        print(f"{what:44} clew {seconds(ours)[0]:7.3f} s   {package}: not installed")
        return
    mine, spent = seconds(ours, lambda: theirs(other))
    print(f"{what:44} clew {mine:7.3f} s   {package} {spent:7.3f} s   {spent / mine:5.1f} times ours")


def main() -> None:
    models = {
        "ResNet-50": (resnet50(), torch.randn(4, 3, 224, 224)),
        "transformer, 24 layers": (transformer(), torch.randn(4, 64, 256)),
    }
    for name, (model, x) in models.items():
        compare(
            f"summary of {name}",
            lambda: str(clew.summary(model, x)),  # noqa: B023 - called at once
            "torchinfo",
            lambda torchinfo: str(torchinfo.summary(model, input_data=x, verbose=0)),  # noqa: B023
        )
        for way, compute in (("", None), (", with values", True)):
            compare(
                f"every op of {name}{way}",
                lambda: clew.visit(model, x, compute=compute),  # noqa: B023
                "torchlens",
                lambda torchlens: torchlens.trace(model, x),  # noqa: B023
            )
        print(f"{f'plain forward of {name}':44}      {seconds(lambda: model(x))[0]:7.3f} s")  # noqa: B023


if __name__ == "__main__":
    main()
