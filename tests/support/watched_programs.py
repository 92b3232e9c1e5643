"""Programs run in this process with Clew attached, and what it noted about them, without a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clew.hooks.entry.guard import Guard
from clew.hooks.seams.torch_hooks import Seams
from clew.hooks.steps.watcher import Watcher
from clew.records.site import Site


class Notes:
    """A sink that keeps the facts."""

    def __init__(self) -> None:
        self.facts: list[tuple[str, int, dict[str, Any]]] = []
        self._tables = 0

    def site(self, site: Site) -> int:
        return 0

    def table(self, signals: Sequence[str], sites: Sequence[int], dtype: str = "f8") -> int:
        self._tables += 1
        return self._tables

    def row(self, table: int, step: int, values: Any) -> None:
        """Numbers are of no interest here."""

    def rows(self, table: int, steps: Any, values: Any) -> None:
        """Nor are many."""

    def fact(self, kind: str, step: int, data: dict[str, Any]) -> None:
        self.facts.append((kind, step, data))

    def event(self, kind: str, step: int, data: dict[str, Any]) -> None:
        """Nor are events."""

    def nudge(self) -> None:
        """Nor is when."""

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [data for name, _, data in self.facts if name == kind]


class Watched:
    """An attached program."""

    def __init__(self) -> None:
        self.notes = Notes()
        self.incidents: list[str] = []
        self.guard = Guard(lambda probe, error: self.incidents.append(f"{probe}: {error!r}"))
        self.watcher = Watcher(self.notes, self.guard)
        self.seams = Seams(self.watcher, self.guard)


@contextmanager
def watched() -> Iterator[Watched]:
    """Attached until the block ends; nothing of ours may have failed."""
    program = Watched()
    program.seams.install()
    try:
        yield program
    finally:
        program.seams.remove()
    assert program.incidents == [], program.incidents


def run_file(folder: Path, text: str, name: str = "program.py", **given: Any) -> Path:
    """Run a program of these lines; it is the user's, as its file is nobody else's."""
    file = folder / name
    file.write_text(text)
    exec(compile(text, str(file), "exec"), {"__name__": "program", "__file__": str(file), **given})
    return file


def line_of(text: str, mark: str) -> int:
    """The number of the line that ends in this comment."""
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(mark))
