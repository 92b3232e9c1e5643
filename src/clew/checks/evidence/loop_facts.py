"""Reads the facts about the training loop and the graph, as defensively as `facts` does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records.facts.model_facts import GraphFact
from clew.records.facts.step_facts import OptimizerUseFact, PatternFact, SchedulerFact


def optimizer_uses(run: RunView) -> list[OptimizerUseFact]:
    """The newest fact of every optimizer: they are told apart by where they were made."""
    newest = {(use.kind, use.file, use.line, use.index): use for use in run.known(OptimizerUseFact)}
    stepped = {(u.kind, u.file, u.line, u.held) for u in newest.values() if u.stepped}
    return [u for u in newest.values() if u.stepped or (u.kind, u.file, u.line, u.held) not in stepped]


def graphs(run: RunView) -> list[GraphFact]:
    """The newest `graph` fact of every root."""
    newest = {graph.root: graph for graph in run.known(GraphFact)}
    return list(newest.values())


def schedulers(run: RunView) -> list[SchedulerFact]:
    """The newest fact of every scheduler."""
    return list({scheduler.index: scheduler for scheduler in run.known(SchedulerFact)}.values())


@dataclass(frozen=True)
class Order:
    """The order of events in a step, and how many steps had it."""

    pattern: str
    count: int
    first: int  # step


def orders(run: RunView) -> list[Order]:
    """Every order of events that occurred, the most frequent first."""
    known = {fact.id: fact.pattern for fact in run.known(PatternFact)}
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
