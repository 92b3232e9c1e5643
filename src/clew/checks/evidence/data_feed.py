"""The data that the models of a run got: loaders, evaluation sources, and labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.run_view import RunView
from clew.records.data_names import says_held_out
from clew.records.facts.loss_facts import LabelsFact, LossFact
from clew.records.facts.step_facts import FedFact, LoaderFact
from clew.records.site import Site


def loaders(run: RunView) -> dict[int, LoaderFact]:
    return {loader.index: loader for loader in run.known(LoaderFact)}


def training_loaders(run: RunView, root: str | None = None) -> list[LoaderFact]:
    """The loaders whose batches went into training forwards (of one model)."""
    known = loaders(run)
    fed = [fact for fact in run.known(FedFact) if fact.phase == "train" and root in (None, fact.root)]
    numbers = [fact.loader for fact in fed]
    return [known[n] for n in dict.fromkeys(numbers) if n is not None and n in known]


def feeding_site(run: RunView, site: Site) -> Site:
    """Where a model's training batches come from: the loop over its loader, or the call that gets them."""
    loader = next(iter(training_loaders(run, site.root)), None)
    if loader is not None:
        return loader.site
    for fact in run.known(FedFact):
        if fact.phase == "train" and site.root in (None, fact.root):
            return Site(site.module, site.op, fact.file, fact.line, "train", site.root)
    return site


def first_input(root: str | None) -> Site:
    """The first input of a model in training, about which `sample.…` is recorded."""
    return Site("", "input[0]", phase="train", root=root)


def sources(run: RunView) -> list[FedFact]:
    """Where evaluation inputs came from."""
    return [fact for fact in run.known(FedFact) if fact.phase == "eval"]


def source_site(run: RunView, source: FedFact) -> Site:
    """The loop over its loader, or the call of the model."""
    loader = None if source.loader is None else loaders(run).get(source.loader)
    return (
        loader.site if loader is not None else Site("", None, source.file, source.line, "eval", source.root)
    )


@dataclass(frozen=True)
class ClassCounts:
    """How often a loss got each class, and how often it was predicted right, up to a step."""

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
        ClassCounts(
            fact.step, {c: n for c, n, _ in fact.whole_counts}, {c: r for c, _, r in fact.whole_counts}
        )
        for fact in run.known(LabelsFact)
        if (fact.file, fact.line) == (site.file, site.line)
    ]


def loss_facts(run: RunView, site: Site) -> Iterator[LossFact]:
    """The `loss` facts of a loss call."""
    for fact in run.known(LossFact):
        if (fact.file, fact.line) == (site.file, site.line):
            yield fact


def is_weighted(run: RunView, site: Site) -> bool:
    """Whether the loss call weights classes or samples, or leaves that to the program's own code."""
    return any(fact.weighted or fact.reduction == "none" for fact in loss_facts(run, site))


def says_validation(found: tuple[str, ...]) -> bool:
    """Whether a program calls this its validation or test data."""
    return any(map(says_held_out, found))


def says_training(found: tuple[str, ...]) -> bool:
    return any("train" in name.lower() or name.lower().startswith("tr_") for name in found)
