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
    """By `clew data`, like all `data.…`: how fast a loader is. `loader` (its name), `file`, `line`,
    `measured`: `{loader, model, both, step, batch, wait, startup, workers, prefetch, cores, persistent,
    failed, notes}`. The first three are rates `{median, low, high, samples, seconds}` in samples per
    second of the loader alone, the model alone (`step`: `training step` or `forward`) and both together;
    `wait` is the share of the time of both that is spent waiting for the loader, `startup` the seconds
    until the first batch.
    """

    fact_kind = "data.speed"

    measured: Speeds | None = None


@dataclass(frozen=True)
class StagesFact(MeasurementFact):
    """Where a loader's time goes: `loader`, `file`, `line`, `measured`: `{stages, samples, median, p95,
    lines, notes}`; `stages`: `[{name, kind (read, decode, transform, dataset, collate, pickle, pin),
    median, p95 (seconds per sample, without nested stages), share, calls, file, line}]` in the order in
    which a sample passes through them, measured in one process; `lines`: `[{file, line, code, share}]` of
    the user's code.
    """

    fact_kind = "data.stages"

    measured: Stages | None = None


@dataclass(frozen=True)
class SizesFact(MeasurementFact):
    """How large a loader's samples are: `loader`, `file`, `line`, `measured`: `{fields, samples, bytes,
    largest, moving, workers, notes}`; `fields`: `[{field, shape (-1 where samples differ), dtype, bytes,
    fits (narrowest type that can hold all values seen; empty if it is used already), fits_bytes, how}]`,
    largest first; `moving`: `{shared, piped, seconds, samples}`: bytes of a batch sent by shared memory
    and pickled, and the seconds from worker to parent.
    """

    fact_kind = "data.sizes"

    measured: Sizes | None = None


@dataclass(frozen=True)
class SweepFact(MeasurementFact):
    """With `--sweep`: `loader`, `file`, `line`, `measured`: `{rows, workers and prefetch (of the
    program), best_workers, best_prefetch, with_step (the rates are of loader and training step together),
    gain (share of a step's time that the best setting saves; null if unknown), cores, seconds, notes}`;
    `rows`: `[{workers, prefetch, rate, memory, error}]`.
    """

    fact_kind = "data.sweep"

    measured: Sweep | None = None


@dataclass(frozen=True)
class PaddingFact(MeasurementFact):
    """How much of a loader's batches is padding: `loader`, `file`, `line`, `measured`: `{fields, batches,
    notes}`; `fields`: `[{field, axis, how (the lengths are known), batches, samples, share (of padding in
    all elements), low, high (by batch), longest (share if each batch were padded to its own longest
    sample), bucketed (share if samples of similar length were batched together), shortest_length,
    median_length, p95_length, longest_length, padded_to}]`.
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
