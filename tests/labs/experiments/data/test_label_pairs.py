"""Labels that belong to their inputs, and labels that were reordered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from subjects import HEALTHY, digits, judged, mlp, tried
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

from clew.checks.data.labels_misaligned import LabelsMisaligned as Check
from clew.labs.experiments.data.label_pairs import LabelPairs
from clew.labs.snapshot.step_batch import INPUT, TARGET, StepBatch
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge
from clew.labs.snapshot.users_step.subject_from_call import subject_of


def loader_of(dataset: Any, collate: Any = None) -> DataLoader[Any]:
    generator = torch.Generator().manual_seed(0)
    return DataLoader(dataset, batch_size=32, shuffle=True, collate_fn=collate, generator=generator)


def pixels(count: int = 600) -> TensorDataset:
    x, y = digits()
    return TensorDataset(x.flatten(1)[:count], y[:count])


def classifier(loader: DataLoader[Any], loss: Any = F.cross_entropy) -> Subject:
    torch.manual_seed(0)
    model = mlp(64, 10)
    return subject_of(model, loss, loader, torch.optim.Adam(model.parameters(), 1e-3))


def captured(
    dataset: Any, change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], loss: Any = F.cross_entropy
) -> Subject:
    """As a running script leaves it: the values that the loop made of the loader's batches, by name."""
    subject = classifier(loader_of(dataset), loss)
    model, made = subject.model, []
    for x, y in loader_of(dataset):
        images, labels = change(x, y)
        made.append(
            StepBatch.of({"images": images, "labels": labels}, {id(images): INPUT, id(labels): TARGET})
        )
    subject.batches = made[:12]
    subject.step = lambda batch: loss(model(batch.values["images"].flatten(1)), batch.values["labels"])
    return subject


def one_apart(items: list[Any]) -> Any:
    x, y = default_collate(items)
    return x, y.roll(1)


def apart(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x[torch.randperm(len(x))], y


def together(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    order = torch.randperm(len(x))
    return x[order].view(-1, 1, 8, 8), y[order]


def test_a_collate_function_that_shifts_the_labels_is_certain() -> None:
    result = tried(LabelPairs(), classifier(loader_of(pixels(), one_apart)))
    (finding,) = judged(Check(), result)
    assert finding.confidence == "certain"
    assert "in training than in the dataset" in finding.message
    assert "in the dataset" in result.exhibits[0].caption


def test_a_loop_that_reorders_the_inputs_alone_is_certain() -> None:
    (finding,) = judged(Check(), tried(LabelPairs(), captured(pixels(), apart)))
    assert "samples have a different label in training" in finding.message


def test_pairs_that_stay_together_pass() -> None:
    result = tried(LabelPairs(), captured(pixels(), together))
    assert result.data.sides["training"].matched > 300
    assert judged(Check(), result) == []
    assert judged(Check(), tried(LabelPairs(), classifier(loader_of(pixels())))) == []


def test_labels_that_are_only_renamed_pass() -> None:
    def renamed(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x, 9 - y

    result = tried(LabelPairs(), captured(pixels(), renamed))
    assert result.data.sides["training"].other > 100
    assert judged(Check(), result) == []


class Noisy(Dataset[Any]):
    """No image comes twice."""

    def __init__(self) -> None:
        self.x, self.y = pixels(900).tensors

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index] + 0.3 * torch.randn(64), self.y[index]


@pytest.mark.parametrize(("change", "count"), [(apart, 1), (lambda x, y: (x, y), 0)])
def test_inputs_that_differ_each_time_are_judged_by_what_can_be_learned(change: Any, count: int) -> None:
    result = tried(LabelPairs(), captured(Noisy(), change))
    assert result.data.sides["training"].matched == 0
    found = judged(Check(), result)
    assert len(found) == count
    assert all("simple learner" in f.message for f in found)


def test_regression_is_judged_too() -> None:
    x, _ = digits()
    y = x.flatten(1)[:, 20:21] + torch.randn(len(x), 1)
    dataset = TensorDataset(x.flatten(1)[:400], y[:400])

    def loss(output: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(output[:, :1], target)

    found = judged(Check(), tried(LabelPairs(), captured(dataset, apart, loss)))
    assert "a different label" in found[0].message
    assert judged(Check(), tried(LabelPairs(), captured(dataset, lambda x, y: (x, y), loss))) == []


def test_copies_with_different_labels_pass() -> None:
    """A table of few categories: the same row may rightly be labelled in two ways."""
    torch.manual_seed(0)
    x = torch.randint(0, 2, (600, 64)).float()
    x[:, 3:] = 0
    dataset = TensorDataset(x, torch.randint(0, 10, (600,)))
    with pytest.raises(CannotJudge, match="too few"):
        tried(LabelPairs(learned=10_000), captured(dataset, lambda x, y: (x, y)))


def test_without_a_dataset_it_says_what_is_needed() -> None:
    with pytest.raises(CannotJudge, match="no DataLoader"):
        tried(LabelPairs(), HEALTHY["cnn"]())


def test_an_autoencoder_has_no_labels() -> None:
    model = nn.Linear(64, 64)
    loader = loader_of(TensorDataset(pixels().tensors[0]))
    optimizer = torch.optim.Adam(model.parameters())
    subject = subject_of(model, None, loader, optimizer, step=lambda b: F.mse_loss(model(b[0]), b[0]))
    with pytest.raises(CannotJudge, match="also the target"):
        tried(LabelPairs(), subject)
