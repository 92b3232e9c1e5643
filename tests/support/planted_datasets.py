"""Datasets with something planted in them, and how the tests survey them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

from clew.checks.catalog import CHECKS
from clew.checks.run_view import RunView
from clew.checks.runner import ask
from clew.labs.loaders.readable_loader import ReadableLoader, readable_loader
from clew.labs.loaders.survey.split_survey import SurveyResult, survey
from clew.records.dataset_survey import DatasetSurvey
from clew.records.finding import Finding


class Listed(Dataset[Any]):
    """Samples that are there already; an exception among them is raised."""

    def __init__(self, samples: Sequence[Any], length: int | None = None) -> None:
        self.samples = samples
        self.length = len(samples) if length is None else length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        sample = self.samples[index]
        if isinstance(sample, Exception):
            raise sample
        return sample


def pictures(count: int, seed: int = 0, side: int = 12) -> Tensor:
    """Different from one another by far: noise, coarsely."""
    drawn = torch.Generator().manual_seed(seed)
    coarse = torch.randn(count, 1, side, side, generator=drawn)
    return coarse.clamp(-2, 2)


def table(count: int, columns: int = 8, seed: int = 0) -> Tensor:
    return torch.randn(count, columns, generator=torch.Generator().manual_seed(seed))


def classes(count: int, many: int = 4, seed: int = 1) -> Tensor:
    return torch.randint(0, many, (count,), generator=torch.Generator().manual_seed(seed))


def labelled(x: Tensor, y: Tensor | None = None) -> TensorDataset:
    return TensorDataset(x, classes(len(x)) if y is None else y)


def split(dataset: Any, role: str = "train", **settings: Any) -> ReadableLoader:
    """As a program would have it: shuffled in training, unless it says otherwise."""
    settings = {"batch_size": 16, **({"shuffle": True} if role == "train" else {}), **settings}
    if "batch_sampler" in settings:
        settings = {"batch_sampler": settings["batch_sampler"]}
    if isinstance(dataset, torch.utils.data.IterableDataset):
        settings.pop("shuffle", None)
    loader = DataLoader(dataset, **settings)
    readable = readable_loader(loader, role=role, names=(f"{role}_loader",))
    readable.file, readable.line = "train.py", 12
    return readable


def looked_through(dataset: Any, **settings: Any) -> DatasetSurvey:
    """The survey of one split that is trained on."""
    return survey([split(dataset, **settings)], time_limit=60).surveys[0]


def both(train: Any, val: Any, **limits: Any) -> SurveyResult:
    return survey([split(train), split(val, "eval")], **{"time_limit": 60, **limits})


def said(*looks: SurveyResult | DatasetSurvey) -> dict[str, Finding]:
    """What the checks conclude from surveys alone, by name; they read what JSON leaves of them."""
    facts = []
    for look in looks:
        surveys = [look] if isinstance(look, DatasetSurvey) else look.surveys
        facts += [("data.survey", one.to_json()) for one in surveys]
        facts += [("data.between", pair.to_json()) for pair in getattr(look, "between", ())]
    run = RunView(_Surveyed(json.loads(json.dumps(facts, allow_nan=False))))
    found = [finding for kind in CHECKS for finding in ask(kind(), run)[0]]
    return {finding.check: finding for finding in reversed(found)}


class _Surveyed:
    """A run of which only this is known."""

    end: dict[str, Any] | None = None
    last_step = -1

    def __init__(self, facts: Sequence[tuple[str, Any]]) -> None:
        self.facts = [SimpleNamespace(kind=kind, step=0, data=data) for kind, data in facts]
        self.events: list[Any] = []

    def signal_names(self) -> list[str]:
        return []

    def series(self, name: str) -> Iterator[Any]:
        return iter(())
