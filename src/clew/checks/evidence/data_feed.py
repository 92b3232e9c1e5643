"""The data that the models of a run got: loaders, evaluation sources, and labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.evidence.recorded_facts import Data, flag, names, text, whole
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records.site import Site


@dataclass(frozen=True)
class Loader:
    """A DataLoader as it was set up."""

    index: int
    file: str | None
    line: int | None
    batch_size: int | None
    workers: int
    shuffle: bool | None
    sampler: str
    length: int | None
    names: tuple[str, ...]
    dataset: str
    dataset_number: int | None
    generator: str | None
    random: bool
    worker_init: str | None

    @classmethod
    def read(cls, data: Data) -> Loader:
        shuffle = data.get("shuffle")
        return cls(
            index=_number(data.get("index")),
            file=text(data.get("file")),
            line=whole(data.get("line")),
            batch_size=whole(data.get("batch_size")),
            workers=whole(data.get("num_workers")) or 0,
            shuffle=shuffle if isinstance(shuffle, bool) else None,
            sampler=text(data.get("sampler")) or "",
            length=whole(data.get("length")),
            names=names(data.get("names")),
            dataset=text(data.get("dataset")) or "the dataset",
            dataset_number=whole(data.get("dataset_number")),
            generator=text(data.get("generator")),
            random=flag(data.get("random")),
            worker_init=text(data.get("worker_init")),
        )

    @property
    def site(self) -> Site:
        """The line that iterates over it."""
        return Site(op="loader", file=self.file, line=self.line)

    @property
    def has_several_batches(self) -> bool:
        return bool(self.length and self.batch_size and self.length > self.batch_size)


def loaders(run: RunView) -> dict[int, Loader]:
    found = [Loader.read(f.data) for f in run.facts("loader")]
    return {loader.index: loader for loader in found}


def training_loaders(run: RunView, root: str | None = None) -> list[Loader]:
    """The loaders whose batches went into training forwards (of one model)."""
    known = loaders(run)
    numbers = [
        whole(f.data.get("loader"))
        for f in run.facts("fed")
        if f.data.get("phase") == "train" and root in (None, f.data.get("root"))
    ]
    return [known[n] for n in dict.fromkeys(numbers) if n is not None and n in known]


def feeding_site(run: RunView, site: Site) -> Site:
    """Where a model's training batches come from: its loader's loop, or the call that is given them."""
    loader = next(iter(training_loaders(run, site.root)), None)
    if loader is not None:
        return loader.site
    for fact in run.facts("fed"):
        if fact.data.get("phase") == "train" and site.root in (None, fact.data.get("root")):
            file, line = text(fact.data.get("file")), whole(fact.data.get("line"))
            return Site(site.module, site.op, file, line, "train", site.root)
    return site


@dataclass(frozen=True)
class Source:
    """Where evaluation inputs came from."""

    number: int
    root: str
    loader: int | None
    names: tuple[str, ...]
    file: str | None = None
    line: int | None = None

    def site(self, run: RunView) -> Site:
        """The loop over its loader, or the call of the model."""
        loader = loaders(run).get(-1 if self.loader is None else self.loader)
        return loader.site if loader is not None else Site("", None, self.file, self.line, "eval", self.root)


def sources(run: RunView) -> list[Source]:
    return [
        Source(
            _number(f.data.get("source")),
            text(f.data.get("root")) or "",
            whole(f.data.get("loader")),
            names(f.data.get("names")),
            text(f.data.get("file")),
            whole(f.data.get("line")),
        )
        for f in run.facts("fed")
        if f.data.get("phase") == "eval"
    ]


@dataclass(frozen=True)
class ClassCounts:
    """How often each class came at a loss, and how often it was predicted right, up to a step."""

    step: int
    counts: dict[int, int]
    right: dict[int, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def shares(self) -> dict[int, float]:
        return {c: n / self.total for c, n in self.counts.items()} if self.total else {}

    @property
    def collision(self) -> float:
        """The chance that two samples have the same class."""
        return sum(share**2 for share in self.shares.values())

    @property
    def entropy(self) -> float:
        """Of the classes, in nats: the loss of a model that knows only how frequent each is."""
        shares = np.array([s for s in self.shares.values() if s > 0])
        return float(-(shares * np.log(shares)).sum()) if len(shares) else 0.0


def class_counts(run: RunView, site: Site) -> list[ClassCounts]:
    """The counts at a loss call, oldest first."""
    return [
        ClassCounts(f.step, *_read_counts(f.data.get("counts")))
        for f in run.facts("labels")
        if (f.data.get("file"), f.data.get("line")) == (site.file, site.line)
    ]


def _read_counts(value: object) -> tuple[dict[int, int], dict[int, int]]:
    entries = [e for e in value if isinstance(e, (list, tuple))] if isinstance(value, (list, tuple)) else []
    whole_ones = [e for e in entries if len(e) == 3 and all((whole(v) or 0) >= 0 for v in e[1:])]
    triples = [(whole(e[0]), whole(e[1]), whole(e[2])) for e in whole_ones]
    good = [(c, n, r) for c, n, r in triples if c is not None and n is not None and r is not None]
    return {c: n for c, n, _ in good}, {c: r for c, _, r in good}


def at(run: RunView, signal: str, site: Site) -> Series | None:
    """One signal at one site."""
    return next((series for other, series in run.series(signal) if other == site), None)


def loss_facts(run: RunView, site: Site) -> Iterator[Data]:
    """The `loss` facts of a loss call."""
    for fact in run.facts("loss"):
        if (fact.data.get("file"), fact.data.get("line")) == (site.file, site.line):
            yield fact.data


def is_weighted(run: RunView, site: Site) -> bool:
    """Whether the loss call weighs classes or samples, or leaves that to the program's own code."""
    for data in loss_facts(run, site):
        options = data.get("options")
        given = options if isinstance(options, dict) else {}
        if given.get("weight") is not None or given.get("pos_weight") is not None:
            return True
        if data.get("reduction") == "none":
            return True
    return False


def says_validation(found: tuple[str, ...]) -> bool:
    """Whether a program calls this its validation or test data."""
    return any(part in name.lower() for name in found for part in ("val", "test", "eval", "dev", "holdout"))


def says_training(found: tuple[str, ...]) -> bool:
    return any("train" in name.lower() or name.lower().startswith("tr_") for name in found)


def _number(value: object) -> int:
    found = whole(value)
    return -1 if found is None else found
