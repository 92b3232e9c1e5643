"""Tensors that a program builds from lists, read from the `profile.tensors` facts."""

from __future__ import annotations

from dataclasses import dataclass

from clew.checks.evidence.recorded_facts import Data, text, whole
from clew.checks.run_view import RunView
from clew.records.site import Site


@dataclass(frozen=True)
class Built:
    """The calls from one line: shares of the step in which they were timed, as they are and need be."""

    site: Site
    function: str
    share: float
    needed: float
    elements: int


def built_tensors(run: RunView, of: str) -> list[Built]:
    """Those made of `arrays` or `numbers`, the most expensive line first."""
    found = [_read(f.data) for f in run.facts("profile.tensors") if f.data.get("of") == of]
    return sorted(found, key=lambda built: built.needed - built.share)


def _read(data: Data) -> Built:
    function = text(data.get("function")) or "tensor"
    step = max(number(data.get("step")), 1e-9)
    return Built(
        Site(op=function, file=text(data.get("file")), line=whole(data.get("line"))),
        function,
        min(number(data.get("seconds")) / step, 1.0),
        min(number(data.get("needed")) / step, 1.0),
        whole(data.get("elements")) or 0,
    )


def number(value: object) -> float:
    """A finite number that is not negative, else 0."""
    fits = isinstance(value, (int, float)) and 0 <= value < float("inf")
    return float(value) if fits and isinstance(value, (int, float)) else 0.0
