"""The loss of another process that was NaN first: gradients are averaged, so all processes fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.evidence.nan_culprit import Culprit, culprit_at, first_bad
from clew.checks.evidence.recorded_facts import text
from clew.checks.run_view import RunView
from clew.records.finding import Evidence


@dataclass(frozen=True)
class Elsewhere:
    """What another process has recorded."""

    rank: int
    step: int
    kind: str
    culprit: Culprit | None
    replay: str | None  # the command that runs its step again
    why: str | None = None

    @property
    def because(self) -> str:
        told = f"on rank {self.rank} the loss was {self.kind} at step {self.step}"
        return f"{told}: {self.why}" if self.why else f"{told}, and gradients are averaged over all ranks"

    @property
    def fix(self) -> str:
        if self.culprit is not None:
            return self.culprit.fix
        return self.replay or f"look at the batch and the loss of rank {self.rank} at step {self.step}"

    def evidence(self) -> Iterator[Evidence]:
        if self.replay:
            yield Evidence(f"rank {self.rank}: its step is saved; replay it with: {self.replay}")
        for row in self.culprit.evidence() if self.culprit is not None else ():
            yield Evidence(f"rank {self.rank}: {row.text}")


def first_elsewhere(run: RunView, step: int, in_loss: bool) -> Elsewhere | None:
    """The process whose loss was bad before anything was so here."""
    found = []
    for rank, other in run.other_ranks.items():
        bad, series = first_bad(other, "loss")
        if bad is None or series is None or bad > step or (bad == step and in_loss):
            continue
        values = series.since(bad).values
        kind = "NaN" if np.isnan(values[~np.isfinite(values)][0]) else "infinite"
        culprit = culprit_at(other, bad)
        why = culprit.because(other.module_name(culprit.site)) if culprit else None
        found.append(Elsewhere(rank, bad, kind, culprit, _replay(other, bad), why))
    return min(found, key=lambda one: (one.step, one.rank), default=None)


def _replay(run: RunView, step: int) -> str | None:
    for fact in run.facts("repro"):
        path = text(fact.data.get("path"))
        if fact.step == step and fact.data.get("written") and path:
            shorter = os.path.relpath(path)
            return f"clew replay {path if shorter.startswith(os.pardir) else shorter}"
    return None
