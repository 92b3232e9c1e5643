"""`clew.summary`: a network as a table, and what the checks find in it before training.

    print(clew.summary(model, ("batch", 3, 32, 32)))

The checks are those of a run. Their input comes from one traced forward instead of from training.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import nn

from clew.api.forward_errors import explained
from clew.checks import catalog
from clew.checks.base import Check
from clew.checks.ignore_rules import Rule
from clew.checks.run_view import RunView
from clew.checks.runner import judge
from clew.labs.network.network_facts import TracedNetwork, add_places, collect_facts
from clew.labs.network.network_summary import Loss, summarise
from clew.records.network import Summary
from clew.records.verdict import NotJudged, Verdict
from clew.render.screen import drawn_text
from clew.session.project_settings import threshold_facts

CHECKS: tuple[Check, ...] = tuple(kind() for kind in catalog.CHECKS if kind.on_one_forward)
FAILED = "the forward fails"


@dataclass(frozen=True, repr=False)
class NetworkSummary(Summary):
    """A summary that a shell or notebook shows as its table."""

    def __str__(self) -> str:
        from clew.render.network.summary_table import render_summary

        return drawn_text(render_summary, self)

    __repr__ = __str__


def summary(
    model: nn.Module,
    inputs: Any = None,
    *,
    dims: Mapping[str, int | None] | Sequence[str] | None = None,
    dtype: torch.dtype | None = None,
    statistics: bool = False,
    loss: Loss | None = None,
    optimizer: str = "adam",
    compute: bool | None = None,
    keep_going: bool = False,
    ignore: Iterable[str | Rule] = (),
) -> NetworkSummary:
    """The network as a table: print it, or read its rows and `findings`.

    `inputs` is a tensor, a shape (`(4, 3, 32, 32)`, or `("batch", 3, 32, 32)`), a list of several, or a
    dict of keyword inputs. Nothing is computed where that can be avoided, and the model is not changed.
    A forward that fails raises `ForwardError` with an explanation; with `keep_going` the rest is shown
    anyway. `ignore` names checks to ignore, as `clew show --ignore` does.
    """
    with explained():
        described, traced = summarise(
            model,
            inputs,
            dims=dims,
            dtype=dtype,
            statistics=statistics,
            loss=loss,
            optimizer=optimizer,
            compute=compute,
            keep_going=keep_going,
        )
    found = NetworkSummary(**{part.name: getattr(described, part.name) for part in fields(described)})
    if found.shape_error is not None:
        return replace(found, not_judged=tuple(NotJudged(check.name, FAILED) for check in CHECKS))
    verdict = judged(traced, list(ignore))
    return replace(found, findings=verdict.findings, not_judged=verdict.not_judged)


def judged(traced: TracedNetwork, ignore: Sequence[str | Rule] = ()) -> Verdict:
    """The verdict of the checks on one forward."""
    notes = collect_facts(traced)
    notes.facts += threshold_facts()
    verdict = judge(RunView(notes), checks=CHECKS, ignore=ignore)
    if verdict.findings or ignore:  # a rule may name a line
        add_places(notes, traced.model)
        verdict = judge(RunView(notes), checks=CHECKS, ignore=ignore)
    spoken = {f.check for f in verdict.findings} | {i.check for i in verdict.ignored}
    known = {n.check: n.reason for n in verdict.not_judged} | notes.unjudged
    reasons = [NotJudged(c.name, known[c.name]) for c in CHECKS if c.name in known and c.name not in spoken]
    return replace(verdict, not_judged=tuple(reasons))
