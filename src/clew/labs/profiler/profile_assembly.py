"""What the windows, the clock and the samplers found, put together as one `Profile`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch

from clew.labs.profiler.step_parts import Timed, parts_of
from clew.labs.profiler.window_contents import Reading
from clew.records.step_costs import Frame, LineCost, Memory, ModuleCost, Part, Profile, Roof, Sync

MOST_ROWS = 60  # of modules, ops and lines in the log; the file has all
MOST_NOTES = 20


@dataclass
class Found:
    """Everything that was collected; what was not is left as it is."""

    reading: Reading = field(default_factory=Reading)
    timed: Timed | None = None
    logging: float = 0.0  # share of the step
    lines: tuple[LineCost, ...] = ()
    syncs: tuple[Sync, ...] = ()
    python: Frame | None = None
    memory: Memory = field(default_factory=Memory)
    by_module: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # activations, peak
    roof: Roof | None = None
    notes: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


def assemble(found: Found) -> Profile:
    """One profile; nothing is measured here."""
    reading = found.reading
    parts, left, median, p95, speed = _of_clock(found)
    return Profile(
        steps=(min(reading.steps), max(reading.steps)) if reading.steps else (0, 0),
        detailed=len(reading.steps),
        detailed_step=reading.step,
        step_median=median,
        step_p95=p95,
        samples_per_second=speed,
        parts=parts,
        modules=tuple(_with_memory(reading.modules, found.by_module)),
        ops=reading.ops,
        lines=found.lines,
        syncs=found.syncs,
        flame=reading.flame,
        python=found.python,
        timeline=reading.timeline,
        memory=found.memory,
        roof=found.roof,
        unattributed=left,
        threads=torch.get_num_threads(),
        cores=available_cores(),
        device=device_name(),
        notes=tuple(dict.fromkeys(found.notes))[:MOST_NOTES],
        files=dict(found.files),
    )


def _of_clock(found: Found) -> tuple[tuple[Part, ...], float, float, float, float | None]:
    """Parts, what is left over, median, p95 and samples per second."""
    timed, reading = found.timed, found.reading
    if timed is None or not len(timed.total):
        return (), reading.left, reading.step, 0.0, None
    median = timed.quantile(0.5)
    if reading.to_device and reading.step:
        timed = timed.moving("to device", reading.to_device / reading.step)
    timed = timed.moving("logging", found.logging)
    rest = timed.parts.get("rest")
    left = 0.0
    if rest is not None and reading.unnamed:
        left = float(rest.sum()) * reading.unnamed / float(timed.total.sum())
        timed = replace(timed, parts={**timed.parts, "rest": rest * (1.0 - reading.unnamed)})
    return parts_of(timed), left * median, median, timed.quantile(0.95), timed.samples_per_second


def _with_memory(
    modules: Iterable[ModuleCost], by_module: Mapping[str, tuple[int, int]]
) -> Iterable[ModuleCost]:
    for module in modules:
        activations, peak = by_module.get(module.module, (0, 0))
        yield replace(module, activations=activations, peak=peak)


def trimmed(profile: Profile) -> Profile:
    """What goes into the log for the checks: no trees, and the rows that matter."""
    modules = sorted(profile.modules, key=lambda m: -m.total)[:MOST_ROWS]
    kept = {id(module) for module in modules}
    return replace(
        profile,
        modules=tuple(module for module in profile.modules if id(module) in kept),
        ops=profile.ops[:MOST_ROWS],
        lines=profile.lines[:MOST_ROWS],
        syncs=profile.syncs[:MOST_ROWS],
        flame=None,
        python=None,
        timeline=(),
        memory=replace(profile.memory, timeline=(), root=None),
    )


def available_cores() -> int:
    """That this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def device_name() -> str:
    """What the program computes on, as far as can be told without waking anything up."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return str(torch.cuda.get_device_name())
    return "cpu"
