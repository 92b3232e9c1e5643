"""Assembles one `Profile` from the windows, the step clock and the samplers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from clew.labs.profiler.memory.growth_watch import GrowthWatch
from clew.labs.profiler.memory.tensor_memory import ModuleMemory, TensorMemory
from clew.labs.profiler.profile_recorder import WindowsSeen
from clew.labs.profiler.stack_flames import python_flame, share_of_kind, source_lines
from clew.labs.profiler.stack_kinds import LOGGING, TO_DEVICE
from clew.labs.profiler.torch_trace.host_syncs import by_mask
from clew.labs.profiler.torch_trace.roofline import available_cores, roof
from clew.labs.profiler.window_contents import WindowReading, read
from clew.records.step_costs import PARTS, ModuleCost, PartCost, Profile, StepMemory

MOST_ROWS = 60  # of modules, ops and lines in the log; the file has all
MOST_NOTES = 20
LARGEST_TRACE = 20 << 20  # bytes of the compressed trace that is kept
TRACE = "steps.pt.trace.json.gz"
CALLS = "python.prof"

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StepDurations:
    """The seconds of each step, whole and by part, as the run's clock has them."""

    steps: npt.NDArray[np.int64]
    total: Array
    parts: Mapping[str, Array]
    batch: Array  # samples

    def without(self, left_out: set[int]) -> StepDurations:
        """The same without some steps."""
        keep = ~np.isin(self.steps, sorted(left_out))
        parts = {name: values[keep] for name, values in self.parts.items()}
        return StepDurations(self.steps[keep], self.total[keep], parts, self.batch[keep])

    def moving(self, name: str, share: float) -> StepDurations:
        """Moves a share of every step, now known by name, out of the part `rest`."""
        if share <= 0:
            return self
        before = self.parts.get("rest", np.zeros_like(self.total))
        moved = np.minimum(self.total * share, before)
        parts = {**self.parts, "rest": before - moved}
        parts[name] = self.parts.get(name, np.zeros_like(self.total)) + moved
        return StepDurations(self.steps, self.total, parts, self.batch)

    @property
    def samples_per_second(self) -> float | None:
        seconds, samples = float(self.total.sum()), float(self.batch.sum())
        return samples / seconds if seconds > 0 and samples > 0 else None

    def quantile(self, share: float) -> float:
        """Of the whole steps, in seconds."""
        return float(np.quantile(self.total, share)) if len(self.total) else 0.0


Clock = Callable[[WindowReading], StepDurations | None]  # the times of the steps, given what the windows show
Guarded = Callable[[Callable[[], None]], None]  # runs one part of the work and handles its failure


def directly(part: Callable[[], None]) -> None:
    """Unguarded: a failure is raised to the caller."""
    part()


def profile_of(
    seen: WindowsSeen,
    clock: Clock,
    *,
    roof_file: Path,
    notes: Iterable[str] = (),
    folder: Path | None = None,
    watch: GrowthWatch | None = None,
    guarded: Guarded = directly,
) -> Profile:
    """From windows, clock and samplers to one profile; a part that fails does not affect the others.

    `folder` is where the trace of the steps and the counted calls are written; without one nothing is.
    `roof_file` caches this machine's measured peak performance. `watch` knows what grows.
    """
    assembly = _Assembly(seen, notes)
    guarded(lambda: assembly.add_detail(roof_file))
    guarded(assembly.add_syncs)
    guarded(assembly.add_python)
    guarded(lambda: assembly.add_times(clock))
    guarded(lambda: assembly.add_memory(watch))
    if folder is not None:
        guarded(lambda: assembly.write_trace(folder))
        guarded(lambda: assembly.write_calls(folder))
    return replace(assembly.profile, notes=tuple(dict.fromkeys(assembly.notes))[:MOST_NOTES])


class _Assembly:
    """A profile that is being put together: each method adds one part."""

    def __init__(self, seen: WindowsSeen, notes: Iterable[str]) -> None:
        self.profile = Profile(threads=torch.get_num_threads(), cores=available_cores(), device=device_name())
        self.notes = [*notes, *seen.notes]
        self._seen = seen
        self._reading = WindowReading()
        self._logging = 0.0  # share of the step

    def _set(self, **found: Any) -> None:
        self.profile = replace(self.profile, **found)

    def add_detail(self, roof_file: Path) -> None:
        if not self._seen.in_detail:
            return
        best = roof(roof_file)
        reading = self._reading = read(self._seen.in_detail, best)
        self._set(
            steps=(min(reading.steps), max(reading.steps)) if reading.steps else (0, 0),
            detailed=len(reading.steps),
            detailed_step=reading.step,
            step_median=reading.step,  # unless a clock knows better
            modules=reading.modules,
            ops=reading.ops,
            flame=reading.flame,
            timeline=reading.timeline,
            roof=best,
            unattributed=reading.left,
        )

    def add_syncs(self) -> None:
        syncs = self._seen.syncs.found()
        self._set(syncs=syncs + by_mask(self._seen.in_detail, syncs))
        self.notes += [self._seen.syncs.note] if self._seen.syncs.note else []

    def add_python(self) -> None:
        stacks, away = self._seen.stacks, self._seen.syncs.accelerator
        if stacks is not None:
            self._set(python=python_flame(stacks), lines=source_lines(stacks, away))
            self._logging = share_of_kind(LOGGING, stacks, away)
            self.notes += stacks.notes

    def add_times(self, clock: Clock) -> None:
        timed, reading = clock(self._reading), self._reading
        if timed is None or not len(timed.total):
            return
        median = timed.quantile(0.5)
        if reading.to_device and reading.step:
            timed = timed.moving(TO_DEVICE, reading.to_device / reading.step)
        timed = timed.moving(LOGGING, self._logging)
        rest = timed.parts.get("rest")
        left = 0.0
        if rest is not None and reading.unnamed:
            left = float(rest.sum()) * reading.unnamed / float(timed.total.sum())
            timed = replace(timed, parts={**timed.parts, "rest": rest * (1.0 - reading.unnamed)})
        self._set(
            parts=parts_of(timed),
            step_median=median,
            step_p95=timed.quantile(0.95),
            samples_per_second=timed.samples_per_second,
            unattributed=left * median,
        )

    def add_memory(self, watch: GrowthWatch | None) -> None:
        if self._seen.memory:
            newest = self._seen.memory[-1]
            self._set(
                memory=StepMemory(newest.peak, newest.kinds, newest.timeline, newest.root),
                modules=tuple(_with_memory(self.profile.modules, newest)),
            )
        if watch is not None:
            memory = replace(self.profile.memory, processes=watch.processes(), growth=watch.growth)
            self._set(memory=memory)

    def write_trace(self, folder: Path) -> None:
        if not self._seen.in_detail:
            return
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / TRACE
        self._seen.in_detail[-1].save(file)
        if file.stat().st_size > LARGEST_TRACE:
            file.unlink()
            self.notes.append("the trace of the steps was too large to save")
        else:
            self._set(files={**self.profile.files, "chrome trace": TRACE})

    def write_calls(self, folder: Path) -> None:
        if self._seen.calls.write(folder / CALLS):
            self._set(files={**self.profile.files, "cprofile": CALLS})


def parts_of(timed: StepDurations) -> tuple[PartCost, ...]:
    """All of `step_costs.PARTS`, in order; they add up to the step."""
    whole = float(timed.total.sum())
    return tuple(_part(name, timed, whole) for name in PARTS) if whole > 0 else ()


def _part(name: str, timed: StepDurations, whole: float) -> PartCost:
    values = timed.parts.get(name)
    if values is None or not len(values):
        return PartCost(name, 0.0, 0.0, 0.0, len(timed.total))
    median, p95 = np.quantile(values, [0.5, 0.95])
    return PartCost(name, float(median), float(p95), float(values.sum()) / whole, len(values))


def _with_memory(modules: Sequence[ModuleCost], memory: TensorMemory) -> Iterator[ModuleCost]:
    """The modules with their activations and peak, found under their names in the profile."""
    names = {module.module for module in modules}
    known = {}
    for (root, path), of_module in memory.modules.items():
        full = f"{root}.{path}" if path else root
        known[path if path in names and full not in names else full] = of_module
    for module in modules:
        found = known.get(module.module, ModuleMemory())
        yield replace(module, activations=found.activations, peak=found.peak)


def trimmed(profile: Profile) -> Profile:
    """What goes into the log for the checks: no trees, and only the rows that matter."""
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


def device_name() -> str:
    """The device the program computes on, found without initialising any."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return str(torch.cuda.get_device_name())
    return "cpu"
