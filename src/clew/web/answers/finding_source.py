"""The source lines a finding refers to, and its fix as a diff where the edit is certain.

From the source that was kept with the run, never from this machine's files: a run may come from
anywhere, and a path in it may name anything.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from clew.records.finding import Finding

AROUND = 4  # lines shown above and below
LARGEST = 8 << 20
CALL = re.compile(r"#\s*(before|after)\s+(?:[\w.]*\.)?(\w+)(\(\))?")
INSTEAD = re.compile(
    r"(?P<new>(?P<name>[A-Za-z_]\w*)=(?P<value>[-+.\deE]+))\s+#\s*instead of (?P<old>[-+.\deE]+)"
)
MADE = re.compile(
    r"(?:nn\.)?(?P<name>[A-Z]\w*)\((?P<value>[-+.\deE]+)\)\s+#\s*instead of (?P<old>[-+.\deE]+)"
)

Diff = list[dict[str, Any]]


class Sources:
    """The files kept with a run."""

    def __init__(self, files: dict[str, str]) -> None:
        self._lines = {name: text.splitlines() for name, text in files.items()}

    @classmethod
    def read(cls, run: Path) -> Sources:
        file = run / "source.json"
        try:
            if file.is_symlink() or file.stat().st_size > LARGEST:
                return cls({})
            files = json.loads(file.read_bytes())["files"]
            return cls({str(k): v for k, v in files.items() if isinstance(v, str)})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls({})

    def of_finding(self, finding: Finding) -> dict[str, Any]:
        """`code` and `diff`, each None where nothing is known."""
        return {"code": self._code(finding), "diff": self._diff(finding)}

    def _code(self, finding: Finding) -> dict[str, Any] | None:
        lines, line = self._lines.get(finding.site.file or ""), finding.site.line
        if lines is None or line is None or not 1 <= line <= len(lines):
            return None
        first = max(1, line - AROUND)
        shown = lines[first - 1 : line + AROUND]
        return {"file": finding.site.file, "line": line, "first": first, "lines": shown}

    def _diff(self, finding: Finding) -> Diff | None:
        lines = self._lines.get(finding.site.file or "")
        if lines is None:
            return None
        near = finding.site.line or 1
        return inserted(lines, near, as_named(finding.fix, lines, near)) or replaced(lines, finding.fix)


def as_named(fix: str, lines: list[str], near: int) -> str:
    """The fix with the user's own name for the optimizer; empty if that is not known."""
    head = re.match(r"(optimizer|loss|scheduler|model)\.\w+\(", fix)
    if head is None or any(re.search(rf"\b{head[1]}\b", line) for line in lines):
        return fix
    line = lines[near - 1] if near <= len(lines) else ""
    own = re.search(r"\b([A-Za-z_][\w.]*)\.step\(\s*\)", line) if head[1] == "optimizer" else None
    return own[1] + fix[len(head[1]) :] if own else ""


def inserted(lines: list[str], near: int, fix: str) -> Diff | None:
    """`optimizer.zero_grad()  # before loss.backward()`: put before the nearest such call."""
    code, found = fix.partition("#")[0].strip(), CALL.search(fix)
    if not code or found is None or not (found[3] or found[2].endswith("_")) or "…" in code or "..." in code:
        return None
    call = re.compile(rf"\b{re.escape(found[2])}\(")
    hits = [n for n, line in enumerate(lines, 1) if call.search(line.partition("#")[0])]
    if not hits:
        return None
    at = min(hits, key=lambda n: abs(n - near))
    indent = lines[at - 1][: len(lines[at - 1]) - len(lines[at - 1].lstrip())]
    place = at if found[1] == "before" else at + 1
    return _around(lines, place, removed=0, added=[indent + code])


def replaced(lines: list[str], fix: str) -> Diff | None:
    """`lr=0.01  # instead of 1`: in the only line that says so."""
    found = INSTEAD.match(fix) or MADE.match(fix)
    if found is None:
        return None
    opener, between = (r"\b", r"\s*=\s*") if found.re is INSTEAD else (r"\b", r"\(\s*(?:p\s*=\s*)?")
    old = re.compile(rf"({opener}{re.escape(found['name'])}{between})([-+.\deE]+)")
    found_at = [(n, old.search(line)) for n, line in enumerate(lines, 1)]
    hits = [(n, hit) for n, hit in found_at if hit is not None and _equal(hit[2], found["old"])]
    if len(hits) != 1:
        return None
    line, hit = hits[0]
    text = lines[line - 1]
    new = text[: hit.start(2)] + found["value"] + text[hit.end(2) :]
    return _around(lines, line, removed=1, added=[new])


def _equal(given: str, wanted: str) -> bool:
    try:
        return abs(float(given) - float(wanted)) <= 1e-3 * abs(float(wanted))
    except ValueError:
        return False


def _around(lines: list[str], at: int, *, removed: int, added: list[str]) -> Diff:
    """A change at a line, with two lines of context on either side; added lines have no number."""
    before = range(max(1, at - 2), at)
    gone = range(at, at + removed)
    after = range(at + removed, min(len(lines), at + removed + 1) + 1)
    return [
        *({"line": n, "mark": " ", "text": lines[n - 1]} for n in before),
        *({"line": n, "mark": "-", "text": lines[n - 1]} for n in gone),
        *({"line": None, "mark": "+", "text": text} for text in added),
        *({"line": n, "mark": " ", "text": lines[n - 1]} for n in after if n <= len(lines)),
    ]
