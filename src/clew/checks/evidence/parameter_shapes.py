"""How large parameters are, from the `model` fact."""

from __future__ import annotations

import math

from clew.checks.evidence.recorded_facts import rows, shape, text
from clew.checks.run_view import RunView
from clew.records.site import Site


def shape_of(run: RunView, site: Site) -> tuple[int, ...]:
    """The shape of the site's parameter; empty if unknown."""
    root, module, param = run.key(site)
    for fact in run.facts("model"):
        if (text(fact.data.get("root")) or "") == root:
            for row in rows(fact.data.get("parameters")):
                if (row.get("module"), row.get("param")) == (module, param):
                    return shape(row.get("shape")) or ()
    return ()


def elements(run: RunView, site: Site) -> int:
    """How many elements the site's parameter has; 0 if unknown."""
    dims = shape_of(run, site)
    return math.prod(dims) if dims else 0


def parameter_count(run: RunView) -> int:
    """How many trainable elements all models have together."""
    newest = {text(f.data.get("root")) or "": f.data for f in run.facts("model")}
    return sum(
        math.prod(shape(row.get("shape")) or (0,))
        for data in newest.values()
        for row in rows(data.get("parameters"))
        if row.get("requires_grad") is not False
    )
