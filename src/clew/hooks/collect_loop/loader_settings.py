"""How a DataLoader is set up."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, IterableDataset, RandomSampler

from clew.records.facts.step_facts import LoaderFact


def loader_fact(loader: DataLoader[Any], index: int, file: str | None, line: int | None) -> LoaderFact:
    """The `loader` fact (docs/signals.md). Nothing here may draw a sample or a random number."""
    sampler = getattr(loader, "sampler", None)
    iterable = isinstance(loader.dataset, IterableDataset)
    return LoaderFact(
        index=index,
        file=file,
        line=line,
        batch_size=loader.batch_size,
        workers=loader.num_workers,
        shuffle=None if iterable else isinstance(sampler, RandomSampler),
        sampler=type(sampler).__name__,
        dataset=type(loader.dataset).__name__,
        length=None if iterable else _length(loader.dataset),
        drop_last=bool(loader.drop_last),
        pin_memory=bool(loader.pin_memory),
        persistent_workers=bool(loader.persistent_workers),
        prefetch_factor=loader.prefetch_factor,
    )


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None
