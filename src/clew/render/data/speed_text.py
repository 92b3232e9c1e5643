"""Measurements of a loader in words: the same on the terminal and in HTML."""

from __future__ import annotations

from collections.abc import Sequence

from clew.records.loader_speed import EVEN, LOADER, Moving, Padding, Paddings, Rate, Speeds, Sweep
from clew.records.plural import counted
from clew.render.number_text import share, size, span
from clew.render.safe_text import neutral

LITTLE = 0.05  # of a step's time, below which nothing is reported
STARTUP = 1.0  # seconds of worker start-up from which it is reported


def count(rate: float) -> str:
    """`1,230`; one more digit for small numbers."""
    return f"{rate:,.0f}" if rate >= 99.5 else f"{rate:.3g}"


def shape(dims: Sequence[int]) -> str:
    """`3×32×32`, `?` where samples differ; nothing for a single number."""
    return "×".join("?" if n < 0 else str(n) for n in dims)


def setting(workers: int, prefetch: int) -> str:
    """`2 workers, prefetch 2`"""
    if not workers:
        return "no workers"
    return f"{counted(workers, 'worker')}, prefetch {prefetch}"


def setup(name: str, speeds: Speeds) -> str:
    """`train_loader, batches of 32, 2 workers, prefetch 2`"""
    batches = f"batches of {speeds.batch:.0f}, " if speeds.batch else ""
    return f"{neutral(name, 60)}, {batches}{setting(speeds.workers, speeds.prefetch)}"


def rate_rows(speeds: Speeds) -> list[list[str]]:
    """What was measured, with its spread."""
    named: list[tuple[str, Rate | None]] = [
        ("loader alone", speeds.loader),
        (f"{speeds.step or 'model'} alone", speeds.model),
        ("loader and step alternating", speeds.both),
    ]
    return [
        [name, count(rate.median), f"{count(rate.low)} to {count(rate.high)}"]
        for name, rate in named
        if rate is not None
    ]


def limits(speeds: Speeds) -> str:
    """What to work on: the loader, the model, or neither."""
    waits = "" if speeds.wait is None else f"; training waits for data {share(speeds.wait)} of the time"
    started = ""
    if speeds.workers and speeds.startup >= STARTUP and not speeds.persistent:
        started = f"; workers take {span(speeds.startup)} to start in every epoch"
    limited = speeds.limited_by
    if not limited or speeds.loader is None or speeds.model is None:
        return started.removeprefix("; ")
    if limited == LOADER:
        ratio = speeds.model.median / speeds.loader.median
        return (
            f"the loader is the bottleneck: the {speeds.step} could process {ratio:.2g} times as "
            f"many samples{waits}{started}"
        )
    if limited == EVEN:
        return f"loader and {speeds.step} are about equally fast{waits}{started}"
    ratio = speeds.loader.median / speeds.model.median
    return (
        f"the {speeds.step} is the bottleneck: the loader could deliver {ratio:.2g} times as "
        f"many samples{waits}{started}"
    )


def moving_line(moving: Moving, workers: int) -> str:
    """The size of a batch on its way from a worker, and the time it takes."""
    ways = [
        f"{size(one)} {how}"
        for one, how in (
            (moving.shared, "through shared memory"),
            (moving.piped if moving.piped > 1000 else 0, "pickled"),
        )
        if one
    ]
    took = "" if moving.seconds is None else f", {span(moving.seconds)}"
    would = "" if workers else " (with workers; none are used now)"
    return f"a batch from worker to parent: {' and '.join(ways) or 'next to nothing'}{took}{would}"


def sweep_line(sweep: Sweep) -> str:
    """The best setting, and its gain."""
    best, now = sweep.best, sweep.now
    if best is None or best.rate is None:
        return "too few settings could be measured"
    how = f"num_workers={best.workers}" + (f", prefetch_factor={best.prefetch}" if best.prefetch else "")
    if best == now or now is None or now.rate is None:
        if best == now:
            return f"{how}, the current setting: no measured setting is clearly faster"
        return f"{how}: the best of the measured settings"
    ratio = best.rate.median / now.rate.median
    if ratio < 1 + LITTLE:
        return f"{how} is as fast as the current setting"
    if sweep.gain is None:
        return (
            f"{how}: the loader alone is {ratio:.2g} times as fast; "
            "training gains at most the time it waits for data"
        )
    if sweep.gain < LITTLE:
        return f"{how}: no clear gain for training"
    return f"{how}: a training step takes {share(sweep.gain)} less time"


def padding_lines(paddings: Paddings) -> list[str]:
    """The possible savings, field by field; nothing if they are small."""
    return [line for one in paddings.fields if (line := _padding_line(one))]


def _padding_line(one: Padding) -> str:
    longest, bucketed = one.saves(one.longest), one.saves(one.bucketed)
    if max(longest, bucketed) < LITTLE:
        return ""
    named = f"field {one.field}" if one.field.isdigit() else one.field
    sentence = f"{named}: {share(one.share)} of its elements are padding"
    if longest >= LITTLE:
        sentence += f"; padding each batch to its longest sample saves {share(longest)} of all elements"
    if bucketed >= longest + LITTLE:
        sentence += f"; batches of similar lengths save {share(bucketed)}"
    return sentence
