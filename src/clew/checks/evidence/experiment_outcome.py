"""Reads the results of an experiment defensively: a run may come from another version of Clew."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from clew.checks.evidence.recorded_facts import text, whole
from clew.checks.run_view import RunView
from clew.records.facts.experiment_facts import DONE
from clew.records.finding import Evidence
from clew.records.site import Site


def why_not(run: RunView, name: str) -> str | None:
    """Why the experiment of this name could not be run; None if it was, or was not tried."""
    recorded = run.experiments(name)
    if not recorded or recorded[-1].status == DONE:
        return None
    return recorded[-1].reason or "the experiment could not be run"


def number(value: object) -> float:
    """A number, which may be recorded as text; NaN if it is none."""
    try:
        return float(value) if isinstance(value, (int, float, str)) else math.nan
    except ValueError:
        return math.nan


def numbers(value: object) -> list[float]:
    return [number(v) for v in value] if isinstance(value, Sequence) and not isinstance(value, str) else []


def place(data: Mapping[str, Any]) -> Site:
    """Where in the user's code: `line` is `[file, line]`."""
    found = data.get("line")
    if not isinstance(found, Sequence) or len(found) != 2:
        return Site()
    return Site(file=text(found[0]), line=whole(found[1]))


def curve(run: RunView, name: str, which: int = 0, words: str | None = None) -> list[Evidence]:
    """One of the experiment's plots as evidence; none if it does not have so many."""
    plots = [plot for fact in run.experiments(name)[-1:] for plot in fact.plots]
    if which >= len(plots):
        return []
    plot = plots[which]
    return [
        Evidence(
            words or text(plot.get("title")) or "loss",
            values=tuple(numbers(plot.get("y"))),
            x=tuple(numbers(plot.get("x"))),
            x_label=text(plot.get("x_label")) or "step",
        )
    ]


def site_at(place: object) -> Site:
    """Of `{root, module, op, file, line}`, each of which may be missing."""
    data: Mapping[str, Any] = place if isinstance(place, Mapping) else {}
    return Site(
        module=text(data.get("module")),
        op=text(data.get("op")),
        file=text(data.get("file")),
        line=whole(data.get("line")),
        root=text(data.get("root")),
    )


def named(run: RunView, site: Site) -> str:
    """`view in encoder`, for a message; the op alone in the outermost model."""
    if not site.module:
        return site.op or "the model"
    module = run.module_name(site) or site.module
    return f"{site.op} in {module}" if site.op else module
