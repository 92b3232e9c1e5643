"""Exports a profile to files that other tools open: a table, traces, stacks, and a page."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from clew.records.step_costs import Profile
from clew.render.bundle import BundleNotBuilt
from clew.render.profile.files.chrome_trace import write_chrome_trace
from clew.render.profile.files.pstats_file import write_pstats
from clew.render.profile.files.speedscope import write_speedscope
from clew.render.profile.flame_html import write_html
from clew.store.read.run_errors import RunError

HEADER = ("parameter scope", "function name", "input shapes", "arguments", "forward", "backward", "runs")
_OBEYED = ("=", "+", "@", "\t", "\r")  # a spreadsheet takes a cell that begins so for a formula


def write_csv(profile: Profile, path: Path) -> bool:
    """Times are mean seconds of one run; `runs` is how often it ran in the steps that were looked at."""
    rows = list(_ops(profile)) or list(_modules(profile))
    if not rows:
        return False
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(rows)
    return True


def _ops(profile: Profile) -> Iterator[list[str]]:
    for op in profile.ops:
        words = (op.module, op.op, op.shapes, op.arguments)
        yield _row(words, op.forward, op.backward, op.calls, profile.detailed)


def _modules(profile: Profile) -> Iterator[list[str]]:
    """Where no ops were told apart: the modules' own times."""
    for module in profile.modules:
        words = (module.module, module.type, "", "")
        yield _row(words, module.self_forward, module.self_backward, module.calls, profile.detailed)


def _row(words: tuple[str, ...], forward: float, backward: float, calls: float, steps: int) -> list[str]:
    each = calls if calls > 0 else 1.0
    times = [f"{seconds / each:.9g}" for seconds in (forward, backward)]
    return [*map(_inert, words), *times, str(round(calls * max(steps, 1)))]


def _inert(text: str) -> str:
    """Text that no spreadsheet runs."""
    formula = text.startswith(_OBEYED) or (text.startswith("-") and not _is_number(text))
    return f"'{text}" if formula else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


Writer = Callable[[Profile, Path, Path], bool]  # profile, run's folder, file; whether there was something

# By format: the file's name and who writes it. TensorBoard's PyTorch plugin looks for *.pt.trace.json.gz.
WRITERS: dict[str, tuple[str, Writer]] = {
    "csv": ("profile.csv", lambda profile, run, file: write_csv(profile, file)),
    "chrome": ("profile.pt.trace.json.gz", write_chrome_trace),
    "chrome-plain": ("profile.pt.trace.json", write_chrome_trace),
    "pstats": ("profile.prof", write_pstats),
    "speedscope": ("profile.speedscope.json", lambda profile, run, file: write_speedscope(profile, file)),
    "html": ("profile.html", lambda profile, run, file: write_html(profile, file, run.name)),
}
FORMATS = tuple(WRITERS)
USUAL = ("csv", "chrome", "pstats", "speedscope", "html")  # where none is asked for


class CannotExport(RunError):  # noqa: N818 - says what the matter is
    """The folder can't be written, or a format is unknown."""


def export(profile: Profile, run_folder: Path, out: Path, formats: Iterable[str] = ()) -> list[Path]:
    """Write these formats (the usual ones if none is named) into a folder; the files that were written.

    What a profile has nothing of (no Python stacks, no trace) is left out. Raises `CannotExport`.
    """
    wanted = tuple(formats) or USUAL
    unknown = [name for name in wanted if name not in WRITERS]
    if unknown:
        raise CannotExport(f"no such format: {unknown[0]!r}; there are {', '.join(FORMATS)}")
    written: list[Path] = []
    failed = ""
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name in dict.fromkeys(wanted):
            file_name, write = WRITERS[name]
            try:
                written += [out / file_name] if write(profile, run_folder, out / file_name) else []
            except BundleNotBuilt as error:  # the other files need no page
                failed = f"{file_name} is not written: {error}"
    except OSError as error:
        raise CannotExport(f"can't write to {out}: {error.strerror or error}") from error
    if failed:
        raise CannotExport(f"{failed}; the other files are in {out}" if written else failed)
    return written
