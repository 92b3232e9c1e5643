"""Parameters that should have had a gradient but never did."""

from __future__ import annotations

from clew.checks.run_view import RunView
from clew.records.facts.model_facts import ParameterRow


def never_trained(run: RunView, root: str, *, held: bool = True) -> dict[str, ParameterRow]:
    """Parameters that want gradients and for which none was ever seen; if `held`, an optimizer has them."""
    known = run.parameters.get(root)
    if known is None:
        return {}
    return {
        p.name: p
        for p in known.items
        if p.requires_grad
        and not p.has_grad
        and (p.optimizer is not None or not held)
        and run.of_parameter("gradient.norm", (root, p.module, p.param)) is None
    }
