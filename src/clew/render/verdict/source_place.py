"""Where a finding points: the user's file and line, and the source on it."""

from __future__ import annotations

import os
import stat
from itertools import islice

from clew.records.site import Site
from clew.render.safe_text import neutral, short_path

LARGEST_SOURCE = 4_000_000  # bytes; beyond it a file is data, not somebody's program


def location(site: Site) -> str | None:
    """`train.py:42`, as seen from the working folder."""
    if site.file is None:
        return None
    name = site.file if site.file.startswith("<") else short_path(site.file)
    return neutral(name if site.line is None else f"{name}:{site.line}", 200)


def layer(site: Site) -> str | None:
    """`encoder.fc1.weight`: the module and its parameter."""
    parts = [part for part in (site.module, site.param) if part]
    return neutral(".".join(parts), 120) if parts else None


def source_line(site: Site, unchanged_since: float | None = None) -> str | None:
    """The text of the line, if the file is there and was not edited after the run began."""
    if site.file is None or site.line is None or site.line < 1:
        return None
    try:
        about = os.stat(site.file)
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_SOURCE:
            return None  # a path in a run may name anything, also a device that never ends
        if unchanged_since is not None and about.st_mtime > unchanged_since:
            return None
        with open(site.file, encoding="utf-8", errors="replace") as file:
            found = next(islice(file, site.line - 1, None), "")
    except (OSError, ValueError):
        return None
    return neutral(found.strip(), 200) or None
