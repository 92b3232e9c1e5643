"""Results of an experiment, as several checks use them."""

from __future__ import annotations

import math

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


def or_nan(value: float | None) -> float:
    """NaN, which no threshold exceeds, for a number that is not known."""
    return math.nan if value is None else value


def curve(run: RunView, name: str, which: int = 0, words: str | None = None) -> list[Evidence]:
    """One of the experiment's plots as evidence; none if it does not have so many."""
    plots = [plot for fact in run.experiments(name)[-1:] for plot in fact.plots]
    if which >= len(plots):
        return []
    plot = plots[which]
    return [Evidence(words or plot.title or "loss", values=plot.y, x=plot.x, x_label=plot.x_label or "step")]


def op_name(run: RunView, site: Site) -> str:
    """`view in encoder`, for a message; the op alone in the outermost model."""
    if not site.module:
        return site.op or "the model"
    module = run.module_name(site) or site.module
    return f"{site.op} in {module}" if site.op else module
