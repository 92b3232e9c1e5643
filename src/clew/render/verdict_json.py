"""A verdict as JSON. Its shape is stable: scripts and CI settings rely on it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from clew.records.codec import finite
from clew.records.verdict import Verdict
from clew.render.run_summary import RunSummary


def verdict_json(verdict: Verdict, run: RunSummary) -> dict[str, Any]:
    """The JSON of `clew why --json` and `clew run --json FILE`."""
    return {
        "run": run.to_json(),
        "findings": [finding.to_json() for finding in verdict.findings],
        "not_judged": [entry.to_json() for entry in verdict.not_judged],
        "ruled_out": list(verdict.ruled_out),
        "ignored": [entry.to_json() for entry in verdict.ignored],
    }


def dumps(data: Any, *, dense: bool = False) -> str:
    """Strict JSON: ASCII only, so that no text in it can act on a terminal, and no bare NaN.

    `dense` is for deep trees, which would be mostly spaces when indented.
    """
    if dense:
        return json.dumps(finite(data), separators=(",", ":"), allow_nan=False) + "\n"
    return json.dumps(finite(data), indent=2, allow_nan=False) + "\n"


def write_json(path: Path, data: Any, *, dense: bool = False) -> None:
    """Atomic: a reader waiting for the file never sees half of it."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # /dev/stdout, a named pipe: can't be replaced
        path.write_text(dumps(data, dense=dense), encoding="utf-8")
    else:
        replace_file(path, dumps(data, dense=dense))


def replace_file(path: Path, text: str) -> None:
    """Write all of it or nothing: to a file beside it, which is then renamed; a link is not followed."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.partial")
    try:
        partial.write_text(text, encoding="utf-8", errors="replace")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
