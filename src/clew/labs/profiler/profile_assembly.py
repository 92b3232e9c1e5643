"""Assembles one `Profile` from the windows, the step clock and the samplers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from clew.labs.profiler.memory.growth_watch import GrowthWatch
from clew.labs.profiler.memory.tensor_memory import TensorMemory
from clew.labs.profiler.python.stack_flames import (
    python_flame,
    seconds_by_kind,
    share_by_kind,
    source_lines,
)
from clew.labs.profiler.step_parts import Timed, parts_of
from clew.labs.profiler.torch_trace.host_syncs import by_mask
from clew.labs.profiler.torch_trace.roofline import roof
from clew.labs.profiler.window_contents import WindowReading, read
from clew.labs.profiler.window_kinds import WindowsSeen
from clew.records.step_costs import (
    FlameFrame,
    LineCost,
    ModuleCost,
    PartCost,
    Profile,
    Roof,
    StepMemory,
    Sync,
)

MOST_ROWS = 60  # of modules, ops and lines in the log; the file has all
MOST_NOTES = 20
LARGEST_TRACE = 20 << 20  # bytes of the compressed trace that is kept
TRACE = "steps.pt.trace.json.gz"
CALLS = "python.prof"


@dataclass
class ProfileParts:
    """Everything that was collected; what was not is left as it is."""

    reading: WindowReading = field(default_factory=WindowReading)
    timed: Timed | None = None
    logging: float = 0.0  # share of the step
    lines: tuple[LineCost, ...] = ()
    syncs: tuple[Sync, ...] = ()
    python: FlameFrame | None = None
    memory: StepMemory = field(default_factory=StepMemory)
    by_module: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # activations, peak
    roof: Roof | None = None
    notes: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


Clock = Callable[[WindowReading], Timed | None]  # the times of the steps, by what the windows have read
Guarded = Callable[[Callable[[], None]], None]  # runs one part of the work; what fails in it is its business


def directly(part: Callable[[], None]) -> None:
    """Unguarded: a failure is the caller's."""
    part()


def profile_of(
    seen: WindowsSeen,
    clock: Clock,
    *,
    roof_file: Path,
    notes: Iterable[str] = (),
    folder: Path | None = None,
    calls: bool = False,
    watch: GrowthWatch | None = None,
    guarded: Guarded = directly,
) -> Profile:
    """From windows, clock and samplers to one profile; a part that fails leaves the others as they are.

    `folder` is where the trace of the steps and, with `calls`, the counted calls are written; without one
    nothing is. `roof_file` keeps what this machine was seen to do at best. `watch` knows what grows.
    """
    found = ProfileParts(notes=[*notes, *seen.notes])
    guarded(lambda: _collect_detail(found, seen, roof_file))
    guarded(lambda: _collect_times(found, clock))
    guarded(lambda: _collect_python(found, seen))
    guarded(lambda: _collect_memory(found, seen, watch))
    if folder is not None:
        guarded(lambda: _write_trace(found, seen, folder))
    if folder is not None and calls:
        guarded(lambda: _write_calls(found, seen, folder))
    return assemble(found)


def _collect_detail(found: ProfileParts, seen: WindowsSeen, roof_file: Path) -> None:
    if seen.in_detail:
        found.roof = roof(roof_file)
        found.reading = read(seen.in_detail, found.roof)


def _collect_times(found: ProfileParts, clock: Clock) -> None:
    found.timed = clock(found.reading)


def _collect_python(found: ProfileParts, seen: WindowsSeen) -> None:
    found.syncs = seen.syncs.found()
    found.syncs += by_mask(seen.in_detail, found.syncs)
    found.notes += [seen.syncs.note] if seen.syncs.note else []
    stacks, away = seen.stacks, seen.syncs.accelerator
    if stacks is not None:
        found.python = python_flame(stacks)
        found.lines = source_lines(stacks, away)
        found.logging = share_by_kind(seconds_by_kind(stacks, away)).get("logging", 0.0)
        found.notes += stacks.notes


def _collect_memory(found: ProfileParts, seen: WindowsSeen, watch: GrowthWatch | None) -> None:
    if seen.memory:
        newest = seen.memory[-1]
        found.memory = StepMemory(newest.peak, newest.kinds, newest.timeline, newest.root)
        found.by_module = _memory_by_module(newest, {module.module for module in found.reading.modules})
    if watch is not None:
        found.memory = replace(found.memory, processes=watch.processes(), growth=watch.growth)


def _memory_by_module(memory: TensorMemory, names: set[str]) -> dict[str, tuple[int, int]]:
    """Activations and peak of each module, under the name that the profile has for it."""
    by_module = {}
    for (root, path), held in memory.modules.items():
        full = f"{root}.{path}" if path else root
        name = path if path in names and full not in names else full
        by_module[name] = (held.activations, held.peak)
    return by_module


def _write_trace(found: ProfileParts, seen: WindowsSeen, folder: Path) -> None:
    if not seen.in_detail:
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / TRACE
    seen.in_detail[-1].save(file)
    if file.stat().st_size > LARGEST_TRACE:
        file.unlink()
        found.notes.append("the trace of the steps was too large to save")
    else:
        found.files["chrome trace"] = TRACE


def _write_calls(found: ProfileParts, seen: WindowsSeen, folder: Path) -> None:
    if seen.calls.write(folder / CALLS):
        found.files["cprofile"] = CALLS


def assemble(found: ProfileParts) -> Profile:
    """One profile of what was collected; nothing is measured here."""
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


def _of_clock(found: ProfileParts) -> tuple[tuple[PartCost, ...], float, float, float, float | None]:
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
