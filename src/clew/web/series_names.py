"""Names of series and sites: keys for links, labels for people. Units are in `signals`."""

from __future__ import annotations

import hashlib
from pathlib import PurePath
from typing import cast

from clew.records.signal_types import Group
from clew.records.signals import GROUPS
from clew.records.site import Site
from clew.web.answer_shapes import SiteJson

RANKS = {group: rank for rank, group in enumerate(GROUPS)}


def series_key(rank: int, signal: str, site_key: str) -> str:
    """The name of a series in links: the same wherever and whenever the run is read."""
    return _digest(f"{rank}\n{signal}\n{site_key}")


def site_id(site_key: str) -> str:
    return _digest(site_key)


def site_json(site: Site) -> SiteJson:
    """The site as an answer has it."""
    return cast(SiteJson, site.to_json())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


def group_rank(group: Group) -> int:
    """Its place in the list of signals: those of other groups, a newer Clew's among them, come last."""
    return RANKS.get(group, len(RANKS))


def site_label(site: Site, *, several_roots: bool = False) -> str:
    """`encoder.fc1.weight`, or what else says where."""
    if site.module is not None:
        path = site.module or site.root or "the model"
        parts = [site.root if several_roots and site.module and site.root else None, path, site.param]
        name = ".".join(part for part in parts if part)
        return f"{name} ({site.op})" if site.op and site.op not in ("input", "step") else name
    return site.op if site.op and site.op.startswith("input") else ""


def place_label(site: Site) -> str:
    """`train.py:34`."""
    if site.file is None:
        return ""
    name = PurePath(site.file.replace("\\", "/")).name
    return name if site.line is None else f"{name}:{site.line}"
