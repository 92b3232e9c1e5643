"""What the name of a logged metric says about it."""

from __future__ import annotations

import re

SHARES = ("acc", "accuracy", "precision", "recall", "f1", "auc", "auroc", "iou", "miou", "dice", "map")
ACCURACIES = ("acc", "accuracy")
ERRORS = ("mse", "mae", "rmse", "perplexity", "ppl")
HELD_OUT = ("val", "valid", "validation", "test", "eval", "dev", "holdout")


def words(name: str) -> list[str]:
    """`valAccuracy`, `val/acc` and `metric.val_acc` in their parts."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name.removeprefix("metric."))
    return re.findall(r"[a-z]+\d*", spaced.lower())


def is_share(name: str) -> bool:
    """A number between 0 and 1, or the same in percent."""
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
