"""Facts about the training loop and the autograd graph: the newest of each, and the order of events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.facts.model_facts import GraphFact
from clew.records.facts.step_facts import OptimizerUseFact, PatternFact, SchedulerFact


def optimizer_uses(run: RunView) -> list[OptimizerUseFact]:
    """The newest fact of every optimizer; they are distinguished by where they were created."""
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
class SchedulerOrder:
    """An order of events within a step, and how many steps had it."""

    pattern: str
    count: int
    first: int  # step


def patterns(run: RunView) -> dict[int, str]:
    """The orders of events within a step, by their numbers."""
    return {fact.id: fact.pattern for fact in run.known(PatternFact) if fact.id is not None}


def orders(run: RunView) -> list[SchedulerOrder]:
    """Every order of events that occurred, the most frequent first."""
    known = patterns(run)
    found: dict[str, SchedulerOrder] = {}
    for _, series in run.series(signals.EVENTS_PATTERN):
        numbers, firsts, counts = np.unique(series.values, return_index=True, return_counts=True)
        for number, first, count in zip(numbers, firsts, counts, strict=True):
            pattern = known.get(int(number)) if np.isfinite(number) else None
            if pattern is not None:
                found[pattern] = SchedulerOrder(pattern, int(count), int(series.steps[first]))
    return sorted(found.values(), key=lambda order: (-order.count, order.first))


def share_of_steps(run: RunView, has: Callable[[str], bool]) -> float:
    """The share of the steps whose order of events passes a test."""
    known = orders(run)
    return sum(order.count for order in known if has(order.pattern)) / max(sum(o.count for o in known), 1)


def letters(pattern: str) -> str:
    """The events alone: without numbers, brackets and signs of repetition."""
    return "".join(c for c in pattern if c.isalpha())


def per_step(series: Series) -> Series:
    """The number of values in each step that has any."""
    steps, counts = np.unique(series.steps, return_counts=True)
    return Series(series.signal, series.site, steps, counts.astype(np.float64))
