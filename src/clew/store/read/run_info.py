"""Summary of a run without reading its log: cheap enough for a list of hundreds of runs.

A log that was ended says everything in its last record. A small log is read whole. A large one without an end
(running or killed) is searched backwards for the last `mark`, which the writer leaves every two seconds, and
read forward from there; so the cost does not grow with the run.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.records.signals import LOSS
from clew.store.read.run_errors import RunError
from clew.store.read.run_metadata import RunMeta
from clew.store.read.run_reader import RunReader, combined_state, end_state, newer_format, read_meta
from clew.store.read.segment_tail import (
    END_BYTES,
    Tail,
    frame_at,
    last_end,
    mark_in,
    open_regular,
    rank_folders,
    segment_files,
    step_in,
    tail_of,
)
from clew.store.write.frames import HEADER, number
from clew.store.write.process_identity import is_alive
from clew.store.write.row_blocks import block_steps

SMALL = 1 << 20  # bytes of log that are simply read: a few milliseconds
WALKED = 16 << 20  # bytes of an ended log whose checksums are verified: some ten milliseconds
WINDOWS = (1 << 18, 1 << 22, 1 << 26)  # how far back to search for a mark, in turn


@dataclass(frozen=True)
class RunInfo:
    """One line of a list of runs; unknown values are None."""

    id: str
    path: Path
    state: str
    started: float | None  # seconds since the epoch
    script: str
    steps: int | None
    last_loss: float | None
    duration: float | None  # seconds
    damage: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Rank:
    state: str
    step: int
    loss: float | None
    until: float | None  # when it ended, or was last active
    damage: tuple[str, ...] = ()


def peek(path: Path) -> RunInfo:
    """Summarise the run. Damage inside a large log is found only when it is opened."""
    meta, damage = read_meta(path)
    if newer := newer_format(path, meta):
        started = number(meta.started)
        return RunInfo(path.name, path, "unreadable", started, meta.program, None, None, None, (newer,))
    ranks = [_peek_rank(folder, meta) for folder in rank_folders(path).values()]
    if not ranks:
        ranks = [_Rank("running" if is_alive(meta.recorded, None) else "empty", -1, None, None)]
    state = combined_state({rank.state for rank in ranks})
    first = ranks[0]
    started = number(meta.started)
    until = time.time() if state == "running" else first.until
    return RunInfo(
        id=path.name,
        path=path,
        state=state,
        started=started,
        script=meta.program,
        steps=first.step + 1 if first.step >= 0 else None,
        last_loss=first.loss,
        duration=max(until - started, 0.0) if until and started else None,
        damage=(*damage, *(line for rank in ranks for line in rank.damage)),
    )


def _peek_rank(folder: Path, meta: RunMeta) -> _Rank:
    try:
        segments = segment_files(folder)
        size = sum(os.path.getsize(segment) for segment in segments)
        end = last_end(segments)
        if end is not None and not (size <= WALKED and _is_damaged(segments)):
            return _ended(folder, end)
        if size <= SMALL or end is not None:
            return _read_whole(folder, end)
        return _search(segments, meta)
    except (OSError, RunError) as e:
        return _Rank("empty", -1, None, None, (f"{folder.name}: {e}",))


def _ended(folder: Path, end: dict[str, Any]) -> _Rank:
    lost = (f"{folder.name}: not everything was recorded: {end['lost']}",) if end.get("lost") else ()
    return _Rank(end_state(end), step_in(end), number(end.get("loss")), number(end.get("wall")), lost)


def _is_damaged(segments: list[Path]) -> bool:
    """Whether some of it cannot be read. Nothing is decoded: damage has a wrong checksum."""
    tails = [Tail(segment) for segment in segments]
    for tail in tails:
        tail.read(lambda _: None)
    return any(tail.gap for tail in tails)


def _read_whole(folder: Path, end: dict[str, Any] | None) -> _Rank:
    run = RunReader(folder.parent)
    rank = int(folder.name.removeprefix("rank"))
    data = run.ranks[rank]
    losses = [
        (steps[-1], values[-1]) for site, steps, values in data.series(LOSS.name) if site.phase != "eval"
    ]
    loss = number(float(max(losses)[1])) if losses else None
    step = data.last_step
    if end is not None:  # it counts steps that can no longer be read
        step, loss = max(step, step_in(end)), number(end.get("loss"))
    return _Rank(run.rank_state(rank), step, loss, run.last_heard(rank), tuple(run.rank_damage(rank)))


def _search(segments: list[Path], meta: RunMeta) -> _Rank:
    heard = os.path.getmtime(segments[-1])
    state = "running" if is_alive(_begin(segments[-1]) or meta.recorded, heard) else "killed"
    for window in WINDOWS:
        step, loss = _last_mark(tail_of(segments[-1], window))
        if step >= 0:
            return _Rank(state, step, loss, heard)
    return _Rank(state, -1, None, heard)


def _begin(segment: Path) -> dict[str, Any]:
    """Who writes this segment: its first record."""
    with open_regular(segment) as file:
        head = file.read(END_BYTES)
    payload = frame_at(head, head.find(b'J{"t":"begin"') - HEADER.size)
    return mark_in(payload) if payload else {}


def _last_mark(tail: bytes) -> tuple[int, float | None]:
    """Step and loss at the last mark, and the step of the frames that follow it."""
    at = len(tail)
    while (at := tail.rfind(b'J{"t":"mark"', 0, at)) >= 0:
        payload = frame_at(tail, at - HEADER.size)
        if payload is not None:  # otherwise these bytes only look like one
            mark = mark_in(payload)
            return max(step_in(mark), _steps_from(tail, at - HEADER.size)), number(mark.get("loss"))
    return -1, None


def _steps_from(tail: bytes, at: int) -> int:
    last = -1
    while (payload := frame_at(tail, at)) is not None:
        if payload[:1] == b"B" and len(steps := block_steps(payload)):
            last = max(last, int(steps.max()))
        at += HEADER.size + len(payload)
    return last
