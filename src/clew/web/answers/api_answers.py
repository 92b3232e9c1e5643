"""Answers every API request, independent of HTTP: used by the server and by the report."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

from clew.records.version import __version__
from clew.web.answer_shapes import (
    CompareAnswer,
    DataAnswer,
    GraphAnswer,
    HistogramsAnswer,
    LayersAnswer,
    NotesAnswer,
    ProfileAnswer,
    RunDetail,
    RunEvent,
    RunList,
    RunRow,
    SeriesAnswer,
    SignalList,
)
from clew.web.answers import run_files, run_rows
from clew.web.answers import series_points as series
from clew.web.answers.layer_maps import MOST_COLUMNS, layers_answer
from clew.web.answers.recorded_histograms import histograms_answer
from clew.web.answers.run_comparison import MOST_RUNS, compare_answer
from clew.web.answers.series_points import AXES, StepAxis
from clew.web.runs.judge_process import Judgement, Judges
from clew.web.runs.run_library import Glance, Library, log_bytes

SHORT_LOG = 8 << 20  # bytes
FIRST_VERDICT = 1.5  # seconds that a page waits for the first verdict of a run

Span = tuple[float | None, float | None]


class BadRequest(ValueError):  # noqa: N818 - says what it is
    """An invalid request; the message is one clear line."""


class ApiAnswers:
    """Answers as JSON data. Safe to use from several threads."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.judges = Judges(library)

    @classmethod
    def at(cls, folder: Path) -> ApiAnswers:
        """The runs in a folder; a run folder is opened alone."""
        from clew.store.read.run_reader import is_run

        if is_run(folder):
            return cls(Library(folder.absolute().parent, only=folder.absolute().name))
        return cls(Library(folder))

    def warm(self) -> None:
        """Open the newest run, which is most likely requested first."""
        with contextlib.suppress(Exception):  # any problem with it is reported when it is requested
            newest = next(iter(self.library.scan()))
            with self.library.open(newest):
                pass

    def close(self) -> None:
        self.judges.close()
        self.library.close()

    def rows(self) -> dict[str, RunRow]:
        """The row of every run."""
        glances = self.library.scan()
        judged = {n: self.judges.get(n, g) if g.info else Judgement() for n, g in glances.items()}
        return {name: run_rows.row(name, glance, judged[name]) for name, glance in glances.items()}

    def runs(self) -> RunList:
        found = list(self.rows().values())
        return {"dir": str(self.library.root), "version": __version__, "now": time.time(), "runs": found}

    def run(self, name: str, rank: int | None = None, patience: float = FIRST_VERDICT) -> RunDetail:
        with self.library.open(name) as run:  # first: judging a long log would only delay it
            glance = self.library.glance(name)
            judged = self.judges.wait(name, glance, patience if _is_short(glance) else 0.0)
            with run.lock:
                return run_rows.detail(name, self.library.glance(name), judged, run, run.rank(rank))

    def signals(
        self,
        name: str,
        rank: int | None = None,
        *,
        search: str = "",
        group: str = "",
        keys: Sequence[str] = (),
        hist: bool = False,
        offset: int = 0,
        limit: int = 200,
    ) -> SignalList:
        page = slice(offset, offset + min(limit, series.MOST_SIGNALS))
        with self.library.open(name) as run:
            return series.signals_answer(run, rank, search, group, keys, hist, page)

    def series(
        self,
        name: str,
        keys: Sequence[str],
        rank: int | None = None,
        *,
        span: Span = (None, None),
        points: int = 1200,
        x: str = "step",
    ) -> SeriesAnswer:
        if not keys or len(keys) > series.MOST_KEYS:
            raise BadRequest(f"keys: 1 to {series.MOST_KEYS} of them, separated by commas")
        kind = next((axis for axis in AXES if axis == x), None)
        if kind is None:
            raise BadRequest(f"x is one of {', '.join(AXES)}")
        with self.library.open(name) as run:
            axis = StepAxis(run, kind, run.rank(rank))
            if not axis.known:
                raise BadRequest(f"this run has no {x} axis")
            found = series.series_answer(run, keys, axis, span, points)
        return {**found, "version": self.library.glance(name).version}

    def layers(
        self,
        name: str,
        rank: int | None = None,
        *,
        stat: str = "",
        span: Span = (None, None),
        columns: int = 300,
    ) -> LayersAnswer:
        with self.library.open(name) as run:
            return layers_answer(run, run.rank(rank), stat, *_steps(span), min(columns, MOST_COLUMNS))

    def histograms(
        self,
        name: str,
        rank: int | None = None,
        *,
        site: str = "",
        stat: str = "",
        span: Span = (None, None),
        columns: int = 120,
        kind: str = "",
    ) -> HistogramsAnswer:
        with self.library.open(name) as run:
            most = min(columns, MOST_COLUMNS)
            return histograms_answer(run, run.rank(rank), site, stat, *_steps(span), most, kind)

    def graph(self, name: str, rank: int | None = None) -> GraphAnswer:
        judged = self.judges.get(name, self.library.glance(name))
        with self.library.open(name) as run, run.lock:
            return run_files.graph_answer(run, run.rank(rank), judged.digest.findings)

    def profile(self, name: str, rank: int | None = None) -> ProfileAnswer:
        with self.library.open(name) as run, run.lock:
            return run_files.profile_answer(run, run.rank(rank))

    def data(self, name: str, rank: int | None = None) -> DataAnswer:
        with self.library.open(name) as run, run.lock:
            return run_files.data_answer(run, run.rank(rank))

    def compare(self, runs: Sequence[str]) -> CompareAnswer:
        if not 2 <= len(runs) <= MOST_RUNS or len(set(runs)) != len(runs):
            raise BadRequest(f"runs: 2 to {MOST_RUNS} different ids, separated by commas")
        named = []
        for name in runs:
            glance = self.library.glance(name)
            patience = FIRST_VERDICT / len(runs) if _is_short(glance) else 0.0
            judged = self.judges.wait(name, glance, patience) if glance.info else Judgement()
            named.append((name, glance, judged))
        return compare_answer(named, self.library.open)

    def notes(self, name: str) -> NotesAnswer:
        return run_files.read_notes(self.library.path(name))

    def write_notes(self, name: str, words: str) -> NotesAnswer:
        answer = run_files.write_notes(self.library.path(name), words)
        self.library.touch(name)
        return answer

    def state(self, name: str) -> RunEvent:
        """The state of a run for its events."""
        glance = self.library.glance(name)
        judged = self.judges.get(name, glance) if glance.info else Judgement()
        row = run_rows.row(name, glance, judged)
        modified = run_files.read_notes(self.library.folder(name))["modified"] if glance.info else None
        return {
            **run_rows.brief(row),
            "last_loss": row["last_loss"],
            "verdict_version": judged.version,
            "notes": modified or 0,
        }


def _is_short(glance: Glance) -> bool:
    """Whether it is judged while the client waits; a long log takes seconds."""
    return log_bytes(glance) < SHORT_LOG


def _steps(span: Span) -> tuple[int | None, int | None]:
    lo, hi = span
    return (None if lo is None else int(lo)), (None if hi is None else int(hi))
