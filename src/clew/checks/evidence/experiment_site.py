"""Where an experiment found something: the module, operation and line that it recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.checks.evidence.recorded_facts import text, whole
from clew.checks.run_view import RunView
from clew.records.site import Site


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
