"""Optimizers whose steps do not depend on how large the gradient is: Adam and its relatives."""

from __future__ import annotations

import re

from clew.checks.run_view import RunView

SCALE_FREE = re.compile(r"adam|adagrad|adadelta|rmsprop|rprop|lion|adafactor|lamb|sign", re.IGNORECASE)


def scale_free(run: RunView) -> bool:
    """Whether no optimizer takes longer steps for larger gradients."""
    return bool(run.optimizers) and all(SCALE_FREE.search(o.kind) for o in run.optimizers)
