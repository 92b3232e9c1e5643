"""Loss calls built by hand, for the checks that look at what goes into them."""

from __future__ import annotations

from typing import Any

from fake_run import FakeRun

from clew.records.site import Site


def call_site(kind: str, line: int = 29) -> Site:
    return Site(op=kind, file="train.py", line=line, phase="train")


def loss_call(kind: str, shape: tuple[int, ...] = (32, 10), line: int = 29, **output: Any) -> FakeRun:
    """A run with one loss call; `output` says what made its input."""
    run = FakeRun().fact(
        "loss", kind=kind, file="train.py", line=line, input_shape=list(shape), target_dtype="float32"
    )
    usual = {"made_by": "", "dim": None, "logged": False, "clamped": False, "picked": False}
    return run.fact("output", kind=kind, file="train.py", line=line, shape=list(shape), **{**usual, **output})


def refused(kind: str, message: str, **data: Any) -> FakeRun:
    """A run that ended in a loss call."""
    return FakeRun().fact(
        "loss_failed", 7, kind=kind, file="train.py", line=29, error="RuntimeError", message=message, **data
    )
