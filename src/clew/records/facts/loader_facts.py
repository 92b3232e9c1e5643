"""Facts of `clew data` about one loader: how fast it is, and what that depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clew.records.facts.fact import TypedFact
from clew.records.loader_speed import MeasuredLoader, Paddings, Sizes, Speeds, Stages, Sweep


@dataclass(frozen=True)
class MeasurementFact(TypedFact):
    """Base of all of them: the name of the loader, the line that creates it, and what was measured."""

    loader: str = ""
    file: str | None = None
    line: int | None = None
    measured: Any = None


@dataclass(frozen=True)
class SpeedFact(MeasurementFact):
    """By `clew data`, as all `data.…`: how fast a loader is. `loader` (its name), `file`, `line`,
    `measured`: `{loader, model, both, step, batch, wait, startup, workers, prefetch, cores, persistent,
    failed, notes}`; the first three are rates `{median, low, high, samples, seconds}` in samples a second
    of the loader alone, the model alone (`step`: `training step` or `forward`) and both in turn; `wait` is
    the share of the time of both that is spent waiting for the loader, `startup` the seconds until the
    first batch.
    """

    fact_kind = "data.speed"

    measured: Speeds | None = None


@dataclass(frozen=True)
class StagesFact(MeasurementFact):
    """`loader`, `file`, `line`, `measured`: `{stages, samples, median, p95, lines, notes}`; `stages`:
    `[{name, kind (read, decode, transform, dataset, collate, pickle, pin), median, p95 (seconds per sample,
    without the stages inside), share, calls, file, line}]` in the order in which a sample comes to them, in
    one process; `lines`: `[{file, line, code, share}]` of the user's own.
    """

    fact_kind = "data.stages"

    measured: Stages | None = None


@dataclass(frozen=True)
class SizesFact(MeasurementFact):
    """`loader`, `file`, `line`, `measured`: `{fields, samples, bytes, largest, moving, workers, notes}`;
    `fields`: `[{field, shape (-1 where samples differ), dtype, bytes, fits (smallest type that holds all
    values seen; empty if it has it), fits_bytes, how}]`, heaviest first; `moving`: `{shared, piped,
    seconds, samples}`, bytes of a batch by shared memory and pickled, and the seconds from worker to
    parent.
    """

    fact_kind = "data.sizes"

    measured: Sizes | None = None


@dataclass(frozen=True)
class SweepFact(MeasurementFact):
    """With `--sweep`: `loader`, `file`, `line`, `measured`: `{rows, workers, prefetch (as the program has
    them), best_workers, best_prefetch, with_step (rates are those of loader and training step in turn),
    gain (share of a step's time that the best setting saves; null if not known), cores, seconds, notes}`;
    `rows`: `[{workers, prefetch, rate, memory, error}]`.
    """

    fact_kind = "data.sweep"

    measured: Sweep | None = None


@dataclass(frozen=True)
class PaddingFact(MeasurementFact):
    """`loader`, `file`, `line`, `measured`: `{fields, batches, notes}`; `fields`: `[{field, axis, how (the
    lengths are known), batches, samples, share (of filler in all elements), low, high (by batch), longest
    (share if each batch were padded to its own longest), bucketed (if samples of like length came
    together), shortest_length, median_length, p95_length, longest_length, padded_to}]`.
    """

    fact_kind = "data.padding"

    measured: Paddings | None = None


def measured_facts(measured: MeasuredLoader) -> list[TypedFact]:
    """One fact for each part that was measured."""
    parts = (
        (SpeedFact, measured.speeds),
        (StagesFact, measured.stages),
        (SizesFact, measured.sizes),
        (SweepFact, measured.sweep),
        (PaddingFact, measured.paddings),
    )
    where = (measured.loader, measured.file, measured.line)
    return [kind(*where, part) for kind, part in parts if part is not None]  # type: ignore[arg-type]
