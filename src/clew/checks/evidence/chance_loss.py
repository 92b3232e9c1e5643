"""The loss of a model that knows only how often each target occurs."""

from __future__ import annotations

import math

from clew.checks.run_view import RunView
from clew.records import signals
from clew.records.facts.loss_facts import LossFact
from clew.records.signal_types import Signal

ABSOLUTE = {"l1_loss": 0.8}  # mean absolute deviation of a normal distribution over its standard deviation


def chance_level(run: RunView) -> float | None:
    """Of the only loss call, if it is one of which chance is known."""
    calls = {(c.kind, c.file, c.line): c for c in run.known(LossFact)}
    if len(calls) != 1:
        return None
    call = next(iter(calls.values()))
    if call.kind in ("cross_entropy", "nll_loss"):
        return math.log(call.classes) if call.classes and call.classes > 1 else None
    mean, std = (_target(run, signal) for signal in (signals.TARGET.mean, signals.TARGET.std))
    if call.kind == "mse_loss":
        return std**2 if std > 0 else None
    if call.kind in ABSOLUTE:
        return ABSOLUTE[call.kind] * std if std > 0 else None
    if call.kind.startswith("binary_cross_entropy") and 0 < mean < 1:
        return -mean * math.log(mean) - (1 - mean) * math.log(1 - mean)
    return None


def _target(run: RunView, signal: Signal) -> float:
    found = [series for _, series in run.series(signal)]
    return found[0].median if len(found) == 1 else float("nan")
