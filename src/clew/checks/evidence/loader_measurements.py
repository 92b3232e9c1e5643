"""What `clew data` measured about a program's loaders, as the speed checks read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clew.checks.run_view import RunView
from clew.records.facts.loader_facts import (
    MeasurementFact,
    PaddingFact,
    SizesFact,
    SpeedFact,
    StagesFact,
    SweepFact,
)
from clew.records.loader_speed import MeasuredLoader, Rate
from clew.records.site import Site

TRAINED = "training step"  # the step that speeds must be measured with to predict training's gain
FACTS: Mapping[type[MeasurementFact], str] = {  # and the part of a loader's measurements that each one is
    SpeedFact: "speeds",
    StagesFact: "stages",
    SizesFact: "sizes",
    SweepFact: "sweep",
    PaddingFact: "paddings",
}


def measured_loaders(run: RunView) -> list[MeasuredLoader]:
    """The measurements of each loader, in the order in which they were made."""
    found: dict[str, MeasuredLoader] = {}
    for kind, part in FACTS.items():
        for fact in run.known(kind):
            one = found.get(fact.loader) or MeasuredLoader(fact.loader, fact.file, fact.line)
            found[fact.loader] = replace(one, **{part: fact.measured})
    return list(found.values())


def site_of(one: MeasuredLoader) -> Site:
    return Site(op="loader", file=one.file, line=one.line)


def field_name(field: str) -> str:
    """A field by its key, or by its place in the sample."""
    return f"field {field}" if field.isdigit() else field


def rate(measured: Rate | None) -> str:
    """Samples per second."""
    return f"{measured.median:,.0f}" if measured is not None else "?"


def batch_time(one: MeasuredLoader) -> float | None:
    """Seconds of a training step with its loading; None if the two were not measured together."""
    speeds = one.speeds
    if speeds is None or speeds.both is None or speeds.step != TRAINED or not speeds.batch > 0:
        return None
    return speeds.batch / speeds.both.median
