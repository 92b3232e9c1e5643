"""Augmentation that leaves the samples recognisable, and augmentation that does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from subjects import cnn, digits, judged, tried
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset

from clew.checks.exp.excessive_augmentation import ExcessiveAugmentation as Check
from clew.labs.experiments.data.augmentation_off import AugmentationOff
from clew.labs.snapshot.step_batch import INPUT, TARGET, StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of


class Compose:
    def __init__(self, *transforms: Callable[[Tensor], Tensor]) -> None:
        self.transforms = list(transforms)

    def __call__(self, image: Tensor) -> Tensor:
        for transform in self.transforms:
            image = transform(image)
        return image


class Noise:
    def __init__(self, strength: float) -> None:
        self.strength = strength

    def __call__(self, image: Tensor) -> Tensor:
        return image + self.strength * torch.randn(image.shape)


class Erase(nn.Module):
    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, image: Tensor) -> Tensor:
        top, left = (int(torch.randint(0, 9 - self.side, ())) for _ in range(2))
        image = image.clone()
        image[:, top : top + self.side, left : left + self.side] = 0.0
        return image


def scale(image: Tensor) -> Tensor:
    return (image - 5) / 6


def shift(image: Tensor) -> Tensor:
    return image.roll(int(torch.randint(-1, 2, ())), 2)


class Images(Dataset[Any]):
    def __init__(self, transform: Any = None, augment: bool = False, inside: float = 0.0) -> None:
        self.x, self.y = digits()
        self.x = self.x * 6 + 5
        self.transform, self.augment, self.inside = transform, augment, inside

    def __len__(self) -> int:
        return 600

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.x[index]
        if self.transform is not None:
            image = self.transform(image)
        if self.augment:
            image = torch.randn(image.shape)
        return image + self.inside * torch.randn(image.shape), int(self.y[index])


def program(dataset: Any) -> Subject:
    torch.manual_seed(0)
    model = cnn()
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    return subject_of(model, F.cross_entropy, loader, torch.optim.Adam(model.parameters(), 3e-3))


@pytest.mark.parametrize(
    ("dataset", "name"),
    [
        (lambda: Images(Compose(scale, Noise(8.0))), "Noise"),
        (lambda: Images(Compose(Erase(7), scale)), "Erase"),
        (lambda: Images(nn.Sequential(Erase(7))), "Erase"),
        (lambda: Images(lambda image: torch.rand(()) * 5 * torch.randn(image.shape)), "transform"),
        (lambda: Images(scale, augment=True), "Images.augment"),
        (lambda: Subset(Images(Compose(scale, Noise(8.0))), range(500)), "Noise"),
    ],
)
def test_transforms_that_leave_nothing_are_named(dataset: Callable[[], Any], name: str) -> None:
    result = tried(AugmentationOff(seconds=120.0), program(dataset()))
    (finding,) = judged(Check(), result)
    assert result.data.transforms == (name,)
    assert name in finding.fix
    assert {e.caption.rsplit(", ")[-1] for e in result.exhibits} == {"as it is", "augmented"}


@pytest.mark.parametrize(
    "transform", [Compose(scale, shift), Compose(scale, Noise(0.5)), Compose(Erase(3), scale)]
)
def test_ordinary_augmentation_passes(transform: Any) -> None:
    result = tried(AugmentationOff(seconds=120.0), program(Images(transform)))
    assert result.data.random
    assert judged(Check(), result) == []


def test_transforms_that_are_not_random_pass() -> None:
    result = tried(AugmentationOff(seconds=120.0), program(Images(scale)))
    assert result.data.random is False
    assert judged(Check(), result) == []


def test_values_that_the_loop_made_of_the_loader_s_are_found_again() -> None:
    dataset = Images(Compose(scale, Noise(8.0)))
    subject = program(dataset)
    made = []
    for x, y in DataLoader(dataset, batch_size=32):
        images = x.double().float()
        made.append(StepBatch.of({"images": images, "y": y}, {id(images): INPUT, id(y): TARGET}))
    subject.batches = made
    model = subject.model
    subject.step = lambda batch: F.cross_entropy(model(batch.values["images"]), batch.values["y"])
    (finding,) = judged(Check(), tried(AugmentationOff(seconds=120.0), subject))
    assert "Noise" in finding.fix


def test_noise_inside_the_dataset_can_not_be_judged() -> None:
    with pytest.raises(CannotJudge, match="switched off"):
        tried(AugmentationOff(seconds=120.0), program(Images(scale, inside=0.5)))


def test_a_few_samples_can_not_be_judged() -> None:
    with pytest.raises(CannotJudge, match="20 samples"):
        tried(AugmentationOff(seconds=120.0), program(Subset(Images(Noise(8.0)), range(20))))


def test_the_program_s_own_dataset_is_left_as_it_is() -> None:
    dataset = Images(Compose(scale, Noise(8.0)))
    before = copy.copy(dataset.transform.transforms)
    tried(AugmentationOff(seconds=120.0), program(dataset))
    assert dataset.transform.transforms == before
