"""Logged metrics, and what their names say about them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.data_names import HELD_OUT
from clew.records.site import Site

SHARES = ("acc", "accuracy", "precision", "recall", "f1", "auc", "auroc", "iou", "miou", "dice", "map")
ACCURACIES = ("acc", "accuracy")
ERRORS = ("mse", "mae", "rmse", "perplexity", "ppl")


def logged_metrics(run: RunView) -> Iterator[tuple[str, Site, Series]]:
    """Every metric that was logged, by its name, with the call that logged it."""
    prefix = f"{signals.METRIC.name}."
    for signal in run.names(prefix):
        for site, series in run.series(signal):
            yield signal.removeprefix(prefix), site, series


def words(name: str) -> list[str]:
    """The parts of `valAccuracy`, `val/acc` and `val_acc`."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return re.findall(r"[a-z]+\d*", spaced.lower())


def is_share(name: str) -> bool:
    """A number between 0 and 1, or the same as a percentage."""
    return any(word in SHARES for word in words(name)) and "loss" not in words(name)


def is_accuracy(name: str) -> bool:
    return any(word in ACCURACIES for word in words(name)) and "loss" not in words(name)


def is_loss(name: str) -> bool:
    return "loss" in words(name)


def is_error(name: str) -> bool:
    """Never below zero."""
    return any(word in ERRORS for word in words(name))


def is_held_out(name: str) -> bool:
    return any(word in HELD_OUT for word in words(name))
