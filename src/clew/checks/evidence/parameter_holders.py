"""Many parameters, named by the few modules that contain them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from clew.checks.run_view import RunView
from clew.records import signals
from clew.records.facts.model_facts import ParameterRow
from clew.records.site import Site


def holders(
    chosen: Sequence[ParameterRow], everything: Sequence[ParameterRow]
) -> list[tuple[str, list[ParameterRow]]]:
    """The topmost modules of which all parameters are chosen, else the parameters' own.

    "encoder" says more than a list of its twenty layers. The root itself does not count.
    """
    wanted = set(chosen)
    others = {path for p in everything if p not in wanted for path in ancestors(p.module)}
    groups: dict[str, list[ParameterRow]] = {}
    for parameter in chosen:
        path = next((a for a in ancestors(parameter.module) if a not in others), parameter.module)
        groups.setdefault(path, []).append(parameter)
    return list(groups.items())


def ancestors(module: str) -> list[str]:
    """`a`, `a.b`, `a.b.c` for `a.b.c`"""
    parts = module.split(".") if module else []
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def shape_of(run: RunView, site: Site) -> tuple[int, ...]:
    """The shape of the site's parameter; empty if unknown."""
    root, module, param = run.key(site)
    rows = run.models[root].parameters if root in run.models else ()
    return next((row.shape for row in rows if (row.module, row.param) == (module, param)), ())


def elements(run: RunView, site: Site) -> int:
    """How many elements the site's parameter has; 0 if unknown."""
    dims = shape_of(run, site)
    return math.prod(dims) if dims else 0


def parameter_count(run: RunView) -> int:
    """How many trainable elements all models have together."""
    rows = (row for model in run.models.values() for row in model.parameters if row.requires_grad)
    return sum(math.prod(row.shape or (0,)) for row in rows)


def never_trained(run: RunView, root: str, *, held: bool = True) -> dict[str, ParameterRow]:
    """Parameters that require gradients and never got any; with `held`, only those in an optimizer."""
    known = run.parameters.get(root)
    if known is None:
        return {}
    return {
        p.name: p
        for p in known.items
        if p.requires_grad
        and not p.has_grad
        and (p.optimizer is not None or not held)
        and run.of_parameter(signals.GRADIENT.norm, (root, p.module, p.param)) is None
    }
