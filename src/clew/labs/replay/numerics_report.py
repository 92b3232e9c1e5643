"""Checks every operation or layer on request, and reports what was not finite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from clew.hooks.collect_layers.trained_models import unwrap
from clew.hooks.entry.sink import Sink
from clew.labs.replay.culprits import culprit_fields, describe
from clew.labs.replay.layer_lens import LayerLens
from clew.labs.replay.microscope import CONSTANT, Microscope
from clew.labs.snapshot.nonfinite_values import Culprit
from clew.records.facts.nan_facts import TracedFact

LEVELS = ("op", "layer")


class NonFiniteError(FloatingPointError):
    """Raised by `check()`; `culprits` are those that the report lists."""

    def __init__(self, report: NumericsReport) -> None:
        self.culprits = report.culprits
        super().__init__(str(report))


@dataclass(frozen=True)
class NumericsReport:
    """Everything that made a non-finite value while it was traced, the first one first."""

    culprits: tuple[Culprit, ...]
    steps: tuple[int, ...] = ()  # of each of them, where steps are counted

    def __bool__(self) -> bool:
        return bool(self.culprits)

    def __str__(self) -> str:
        if not self.culprits:
            return "every traced value is finite"
        when = [f"step {step}: " for step in self.steps] or [""] * len(self.culprits)
        return "\n\n".join(w + as_text(culprit) for w, culprit in zip(when, self.culprits, strict=True))


class NumericsTrace:
    """A context manager; it can be entered repeatedly, and the report accumulates."""

    def __init__(
        self, model: nn.Module | None, *, nan: bool, inf: bool, level: str, allow: str | Sequence[str]
    ) -> None:
        roots = {} if model is None else {type(unwrap(model)).__name__: unwrap(model)}
        self._kinds = {kind for kind, wanted in (("nan", nan), ("inf", inf)) if wanted}
        self._allow = (allow,) if isinstance(allow, str) else tuple(site for site in allow if site)
        self._lens: Any = LayerLens(roots) if level == "layer" else Microscope(roots, live=True)

    def __enter__(self) -> NumericsTrace:
        self._lens.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._lens.__exit__(*exception)

    def report(self) -> NumericsReport:
        """What produced non-finite values so far: an object that prints as text."""
        found = [c for c in self._culprits() if c.result in self._kinds and not self._allowed(c)]
        return NumericsReport(tuple(found))

    def check(self) -> None:
        """Raise `NonFiniteError`, with the report as its message, if there is anything to report."""
        report = self.report()
        if report:
            raise NonFiniteError(report)

    def _culprits(self) -> list[Culprit]:
        if isinstance(self._lens, LayerLens):
            return self._lens.culprits
        return [describe(e, self._lens, self._lens.batch) for e in self._lens.events if e.kind != CONSTANT]

    def _allowed(self, culprit: Culprit) -> bool:
        """Sites are modules (with everything in them), operations, or `file.py:line`."""
        path = culprit.module or ""
        place, exact = f"{culprit.file}:{culprit.line}", {culprit.op, path}
        return any(
            site in exact or path.startswith(f"{site}.") or (":" in site and place.endswith(site))
            for site in self._allow
        )


class TraceWindow:
    """Traces the steps of a run from one to another, and records what is found."""

    def __init__(self, sink: Sink, level: str, first: int, last: int | None) -> None:
        self._sink = sink
        self._trace = NumericsTrace(None, nan=True, inf=True, level=level, allow=())
        self._first, self._last = first, last
        self._inside = False
        self._steps: list[int] = []  # that are recorded

    def step_begins(self, step: int) -> None:
        """Between two steps, on the training thread."""
        wanted = self._first <= step and (self._last is None or step <= self._last)
        if wanted and not self._inside:
            self._trace.__enter__()
        elif self._inside and not wanted:
            self._trace.__exit__(None, None, None)
        if self._inside:
            self._write(step - 1)
        self._inside = wanted

    def close(self, step: int) -> NumericsReport:
        """The run is over, or Clew must remove itself from torch."""
        if self._inside:
            self._trace.__exit__(None, None, None)
            self._inside = False
            self._write(step)
        return NumericsReport(self._trace.report().culprits[: len(self._steps)], tuple(self._steps))

    def _write(self, step: int) -> None:
        culprits = self._trace.report().culprits
        for culprit in culprits[len(self._steps) :]:
            TracedFact(**culprit_fields(culprit)).write(self._sink, step)
            self._steps.append(step)


def as_text(culprit: Culprit) -> str:
    """A culprit in a few lines."""
    lines = [culprit.sentence]
    if culprit.file:
        lines.append(f"  at {culprit.file}:{culprit.line}")
    if culprit.code:
        lines.append(f"     {culprit.code}")
    if culprit.call:
        lines.append(f"  in call {culprit.call[0]} of {culprit.call[1]} on this line")
    for row in culprit.inputs:
        bad = f", {row.nonfinite} non-finite" if row.nonfinite else ""
        lines.append(f"  {row.name}: {row.dtype} {row.shape}, from {row.min:.4g} to {row.max:.4g}{bad}")
    if culprit.elements:
        places = ", ".join(str(list(e)) for e in culprit.elements[:3])
        count = max(culprit.element_count, len(culprit.elements))
        lines.append(f"  {culprit.elements_of} at {places}; {count} in all")
    lines += [f"  {note}" for note in culprit.notes]
    lines.append(f"  fix: {culprit.fix}")
    return "\n".join(lines)
