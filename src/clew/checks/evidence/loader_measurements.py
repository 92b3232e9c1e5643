"""What `clew data` measured about a program's loaders, as the speed checks read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clew.checks.base import Check
from clew.checks.evidence.speed_gains import duration, expected, size, times, worth
from clew.checks.run_view import RunView
from clew.checks.wording import counted
from clew.records.finding import Evidence, Finding, Severity
from clew.records.loader_speed import (
    FACTS,
    LOADER,
    PICKLE,
    FieldSize,
    MeasuredLoader,
    Rate,
    Stages,
    StageTime,
    Sweep,
)
from clew.records.site import Site

TRAINED = "training step"  # what speeds must have been measured with for a gain of training
SLOW_BATCH = 5e-3  # seconds: below, a loader that limits is the overhead of a small example
MUCH = 0.5  # share of the time of loader and step that is waiting
LARGE = 1e6  # bytes of a sample, or
LARGE_BATCH = 8e6  # of a batch, below which moving it is no matter
MOST_SAVED = 0.95  # of a step that can be saved at all


def measured(run: RunView) -> list[MeasuredLoader]:
    """Loader by loader, in the order in which they were looked at."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for kind in FACTS:
        for fact in run.facts(kind):
            found.setdefault(str(fact.data.get("loader")), {})[kind] = fact.data
    return [MeasuredLoader.from_facts(facts) for facts in found.values()]


def site_of(one: MeasuredLoader) -> Site:
    return Site(op="loader", file=one.file, line=one.line)


def named(field: str) -> str:
    """A field as a person speaks of it: by its key, or its place in the sample."""
    return f"field {field}" if field.isdigit() else field


def batch_time(one: MeasuredLoader) -> float | None:
    """Seconds of a training step with its loading, where both were measured together."""
    speeds = one.speeds
    known = speeds is not None and speeds.step == TRAINED and speeds.both is not None and speeds.batch > 0
    return speeds.batch / speeds.both.median if known and speeds and speeds.both else None


def gain_of(share: float) -> float:
    """How many times as fast a step is that takes this share less time."""
    return 1 / (1 - min(max(share, 0.0), MOST_SAVED))


# -- slow-loader --


def slow_loader(check: Check, run: RunView) -> Iterator[Finding]:
    """The loader limits the training step, by far and at batches that take their time."""
    for one in measured(run):
        speeds, step = one.speeds, batch_time(one)
        if speeds is None or step is None or speeds.wait is None or speeds.limited_by != LOADER:
            continue
        if speeds.wait < MUCH or speeds.wait * step < SLOW_BATCH:
            continue
        gain, slowest = gain_of(speeds.wait), _slowest(one.stages)
        yield check.finding(
            Severity.WARNING,
            message=f"training waits for data in {speeds.wait:.0%} of its time{_because(slowest)}",
            fix=_fix(slowest, speeds.workers, one.sweep),
            site=_site(slowest) or site_of(one),
            evidence=[
                expected(gain, "if no step had to wait", measured=False),
                Evidence(
                    f"samples a second: {_rate(speeds.loader)} from the loader alone, {_rate(speeds.model)} "
                    f"through the training step alone, {_rate(speeds.both)} together"
                ),
                *_stage_evidence(one.stages),
            ],
        )


def _slowest(stages: Stages | None) -> StageTime | None:
    return max(stages.stages, key=lambda s: s.share, default=None) if stages is not None else None


def _because(stage: StageTime | None) -> str:
    return "" if stage is None else f"; {stage.name} takes {stage.share:.0%} of a sample's time"


def _fix(stage: StageTime | None, workers: int, sweep: Sweep | None) -> str:
    less = "do less per sample"
    if stage is not None and stage.kind == PICKLE:
        less = "send less: smaller dtypes, fewer fields, tensors instead of other objects"
    elif stage is not None:
        less = f"make {stage.name} cheaper, or do it once and cache the result"
    if sweep is not None and sweep.gain is not None:
        return less  # what other settings bring is known, and said by loader-worker-count
    if workers == 0:
        return (
            "load in the background: DataLoader(..., num_workers=N), with N from clew data --sweep; "
            f"or {less}"
        )
    return f"{less}; clew data --sweep tries more workers"


def _site(stage: StageTime | None) -> Site | None:
    if stage is None or stage.file is None:
        return None
    return Site(op=stage.name, file=stage.file, line=stage.line)


def _rate(rate: Rate | None) -> str:
    return f"{rate.median:,.0f}" if rate is not None else "?"


def _stage_evidence(stages: Stages | None) -> list[Evidence]:
    if stages is None or not stages.stages:
        return []
    top = sorted(stages.stages, key=lambda s: -s.share)[:3]
    said = ", ".join(f"{s.name} {duration(s.median)} ({s.share:.0%})" for s in top)
    return [Evidence(f"a sample takes {duration(stages.median)} in one process: {said}")]


# -- loader-worker-count --


def worker_count(check: Check, run: RunView) -> Iterator[Finding]:
    """The sweep found a setting with which the training step itself is faster."""
    for one in measured(run):
        sweep = one.sweep
        if sweep is None or sweep.gain is None or sweep.best is None or sweep.now is None:
            continue
        best, now = sweep.best, sweep.now
        gain = gain_of(sweep.gain)
        severity = worth(gain)
        if severity is None or best == now:
            continue
        ahead = f", prefetch_factor={best.prefetch}" if best.prefetch not in (0, 2) else ""
        kept = ", persistent_workers=True" if best.workers else ""
        yield check.finding(
            severity,
            message=f"{counted(best.workers, 'worker')} instead of {now.workers} make a training step "
            f"{times(gain)} as fast",
            fix=f"DataLoader(..., num_workers={best.workers}{ahead}{kept})",
            site=site_of(one),
            evidence=[
                expected(
                    gain,
                    f"{_rate(now.rate)} samples a second now, {_rate(best.rate)} with that",
                    measured=True,
                ),
                Evidence(
                    "samples a second by workers: "
                    + ", ".join(f"{r.workers}: {_rate(r.rate)}" for r in sweep.rows if r.rate is not None)
                ),
            ],
        )


# -- large-sample-transfer --


def large_transfer(check: Check, run: RunView, narrower: float) -> Iterator[Finding]:
    """Large samples that workers hand over in a wider type than they need."""
    for one in measured(run):
        sizes, step = one.sizes, batch_time(one)
        if sizes is None or sizes.moving is None or sizes.moving.seconds is None or not sizes.workers:
            continue
        narrow = sum(field.fits_bytes if field.fits else field.bytes for field in sizes.fields)
        moved = sizes.moving.shared + sizes.moving.piped
        if max(sizes.bytes / LARGE, moved / LARGE_BATCH) < 1 or sizes.bytes < narrower * narrow:
            continue
        saved = sizes.moving.seconds * (1 - narrow / sizes.bytes)
        wait = one.speeds.wait if one.speeds is not None else None
        if step is None or wait is None:
            continue
        gain = gain_of(min(saved / step, wait))
        severity = worth(gain)
        if severity is not None:
            worst = max(sizes.fields, key=lambda field: field.bytes - field.fits_bytes if field.fits else 0.0)
            yield _transfer(check, one, worst, severity, gain)


def _transfer(
    check: Check, one: MeasuredLoader, worst: FieldSize, severity: Severity, gain: float
) -> Finding:
    sizes = one.sizes
    assert sizes is not None
    assert sizes.moving is not None
    return check.finding(
        severity,
        message=f"workers send {size(worst.bytes)} per sample as {worst.dtype} "
        f"({named(worst.field)}), but {worst.fits} would be enough; "
        f"a step would be about {times(gain)} as fast",
        fix=f"return {worst.fits} from the dataset, and convert the batch on arrival: batch.float()"
        + (" / 255" if "255" in worst.how else ""),
        site=site_of(one),
        evidence=[
            expected(gain, f"a sample would take {size(worst.fits_bytes)} instead of {size(worst.bytes)}"),
            Evidence(
                f"moving a batch from worker to parent takes {duration(sizes.moving.seconds or 0.0)}; "
                f"in {counted(sizes.samples, 'sample')} {named(worst.field)} contains {worst.how}"
            ),
        ],
    )
