"""Reads the facts about the training loop and the graph, as defensively as `facts` does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.evidence.recorded_facts import Data, flag, names, rows, text, whole
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records.site import Site


@dataclass(frozen=True)
class OptimizerUse:
    """What an optimizer holds, and whether it did anything."""

    kind: str
    file: str | None
    line: int | None
    stepped: bool
    held: int
    with_grad: int
    outside: int  # held parameters of no model in use
    outside_with_grad: int
    shared: bool  # another optimizer, one that steps, has some of them too
    changed: bool  # something changed its parameters
    backwards: int
    unscaled: int

    @classmethod
    def read(cls, data: Data) -> OptimizerUse:
        return cls(
            kind=text(data.get("class")) or "the optimizer",
            file=text(data.get("file")),
            line=whole(data.get("line")),
            stepped=flag(data.get("stepped")),
            held=whole(data.get("held")) or 0,
            with_grad=whole(data.get("with_grad")) or 0,
            outside=whole(data.get("outside")) or 0,
            outside_with_grad=whole(data.get("outside_with_grad")) or 0,
            shared=flag(data.get("shared")),
            changed=flag(data.get("changed")),
            backwards=whole(data.get("backwards")) or 0,
            unscaled=whole(data.get("unscaled")) or 0,
        )


def optimizer_uses(run: RunView) -> list[OptimizerUse]:
    """The newest fact of every optimizer: they are told apart by where they were made."""
    newest = {}
    for fact in run.facts("optimizer_use"):
        use = OptimizerUse.read(fact.data)
        newest[use.kind, use.file, use.line, whole(fact.data.get("index"))] = use
    stepped = {(u.kind, u.file, u.line, u.held) for u in newest.values() if u.stepped}
    return [u for u in newest.values() if u.stepped or (u.kind, u.file, u.line, u.held) not in stepped]


@dataclass(frozen=True)
class Unregistered:
    kind: str
    within: str | None
    file: str | None
    line: int | None
    parameters: tuple[str, ...]
    count: int
    held: int
    with_grad: int


@dataclass(frozen=True)
class Normalisation:
    path: str
    kind: str
    training: bool
    samples: int


@dataclass(frozen=True)
class Graph:
    """What the losses depend on, among the parameters of one root."""

    root: str
    step: int
    reached: int
    cut: tuple[str, ...]
    cut_by_no_grad: tuple[str, ...]
    idle: tuple[str, ...]
    cuts: tuple[Site, ...]
    unregistered: tuple[Unregistered, ...]
    norms: tuple[Normalisation, ...]
    forward_only: bool = False  # a forward was looked at; nothing was trained
    named: tuple[str, ...] = ()  # of the idle ones, those that the code mentions elsewhere

    @classmethod
    def read(cls, step: int, data: Data) -> Graph:
        return cls(
            root=text(data.get("root")) or "",
            step=step,
            reached=whole(data.get("reached")) or 0,
            cut=names(data.get("cut")),
            cut_by_no_grad=names(data.get("cut_by_no_grad")),
            idle=names(data.get("idle")),
            cuts=tuple(
                Site(op=text(c.get("op")), file=text(c.get("file")), line=whole(c.get("line")))
                for c in rows(data.get("cuts"))
            ),
            unregistered=tuple(_unregistered(row) for row in rows(data.get("unregistered"))),
            norms=tuple(_norms(data.get("norms"))),
            forward_only=flag(data.get("forward_only")),
            named=names(data.get("named")),
        )


def _unregistered(row: Data) -> Unregistered:
    return Unregistered(
        kind=text(row.get("class")) or "module",
        within=text(row.get("within")),
        file=text(row.get("file")),
        line=whole(row.get("line")),
        parameters=names(row.get("parameters")),
        count=whole(row.get("count")) or 0,
        held=whole(row.get("held")) or 0,
        with_grad=whole(row.get("with_grad")) or 0,
    )


def _norms(value: object) -> Iterator[Normalisation]:
    for row in value if isinstance(value, (list, tuple)) else ():
        if isinstance(row, (list, tuple)) and len(row) == 4:
            path, kind, samples = text(row[0]), text(row[1]), whole(row[3])
            if path is not None and kind is not None and samples is not None:
                yield Normalisation(path, kind, flag(row[2]), samples)


def graphs(run: RunView) -> list[Graph]:
    """The newest `graph` fact of every root."""
    newest = {g.root: g for g in (Graph.read(f.step, f.data) for f in run.facts("graph"))}
    return list(newest.values())


@dataclass(frozen=True)
class Scheduler:
    kind: str
    file: str | None
    line: int | None
    step_file: str | None
    step_line: int | None
    steps: int | None
    early: int
    inner: bool
    optimizer: int | None

    @classmethod
    def read(cls, data: Data) -> Scheduler:
        return cls(
            kind=text(data.get("class")) or "the scheduler",
            file=text(data.get("file")),
            line=whole(data.get("line")),
            step_file=text(data.get("step_file")),
            step_line=whole(data.get("step_line")),
            steps=whole(data.get("steps")),
            early=whole(data.get("early")) or 0,
            inner=flag(data.get("inner")),
            optimizer=whole(data.get("optimizer")),
        )


def schedulers(run: RunView) -> list[Scheduler]:
    """The newest fact of every scheduler."""
    return list({whole(f.data.get("index")): Scheduler.read(f.data) for f in run.facts("scheduler")}.values())


@dataclass(frozen=True)
class Order:
    """The order of events in a step, and how many steps had it."""

    pattern: str
    count: int
    first: int  # step


def orders(run: RunView) -> list[Order]:
    """Every order of events that occurred, the most frequent first."""
    known = {whole(f.data.get("id")): text(f.data.get("pattern")) or "" for f in run.facts("pattern")}
    found: dict[str, Order] = {}
    for _, series in run.series("events.pattern"):
        numbers, firsts, counts = np.unique(series.values, return_index=True, return_counts=True)
        for number, first, count in zip(numbers, firsts, counts, strict=True):
            pattern = known.get(int(number)) if np.isfinite(number) else None
            if pattern is not None:
                found[pattern] = Order(pattern, int(count), int(series.steps[first]))
    return sorted(found.values(), key=lambda order: (-order.count, order.first))


def letters(pattern: str) -> str:
    """The events alone: without numbers, brackets and signs of repetition."""
    return "".join(c for c in pattern if c.isalpha())


def per_step(series: Series) -> Series:
    """The number of values in each step that has any."""
    steps, counts = np.unique(series.steps, return_counts=True)
    return Series(series.signal, series.site, steps, counts.astype(np.float64))
