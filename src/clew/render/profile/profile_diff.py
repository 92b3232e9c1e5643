"""Compares two profiles: what became slower or faster, and what is only noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.records.codec import plain
from clew.records.step_costs import ModuleCost, PartCost, Profile
from clew.render.number_text import short
from clew.render.profile.cost_tables import enclosing_module
from clew.store.read.run_metadata import RunMeta

SAME = 0.1  # relative difference up to which derived numbers are equal
SAME_ROOF = 0.25  # a machine's measured peak varies more

P95 = 1.645  # standard deviations between median and 95th percentile of a normal distribution
MEDIAN = 1.2533  # the standard error of a normal median, relative to that of the mean
UNKNOWN = 0.1  # of the value: if the spread is not known
INDEPENDENT = 100  # steps; neighbouring steps are correlated, so more of them don't improve the mean

SURE = 4.0  # standard errors that a difference must exceed: hundreds of modules are tested at once
FLOOR = 0.05  # of the value: two runs of one program on one machine differ by this much
RELEVANT = 0.01  # of a step, or of the peak: smaller differences don't matter
EXPLAINED = 0.7  # of a module's difference in its submodules: then they are named instead
ALIKE = 1.3  # between the smallest and the largest factor of modules that changed equally
ALIKE_FROM = 0.03  # share of a step from which a module is tested
FEWEST_ALIKE = 4
SLOWER, FASTER, NOISE, NEW, GONE = "slower", "faster", "within the noise", "new", "gone"
LARGER, SMALLER = "larger", "smaller"


@dataclass(frozen=True)
class CostChange:
    """One item on both sides; seconds per step, or bytes. None where it is missing."""

    kind: str  # "step", "part", "module", "op", "memory"
    name: str
    before: float | None
    after: float | None
    verdict: str  # one of the words above
    error: float = 0.0  # standard error of the difference
    type: str = ""
    explained: bool = False  # explained by the modules inside it

    @property
    def difference(self) -> float:
        return (self.after or 0.0) - (self.before or 0.0)

    @property
    def significant(self) -> bool:
        return self.verdict != NOISE


@dataclass(frozen=True)
class ProfileDiff:
    """Everything on either side, with what to say about it."""

    names: tuple[str, str]
    differences: tuple[str, ...]  # in the settings: what makes the two not directly comparable
    step: CostChange
    parts: tuple[CostChange, ...] = ()
    modules: tuple[CostChange, ...] = ()
    ops: tuple[CostChange, ...] = ()
    memory: tuple[CostChange, ...] = ()


def compare(
    a: Profile,
    b: Profile,
    names: tuple[str, str] = ("A", "B"),
    about: tuple[RunMeta, RunMeta] = (RunMeta(), RunMeta()),
) -> ProfileDiff:
    """From `a` to `b`."""
    step = max(a.step_median, b.step_median)
    errors = math.hypot(step_error(a), step_error(b))
    few = min(_steps(a), _steps(b))
    word = _judged(a.step_median, b.step_median, errors, step, few)
    modules = tuple(_marked(list(_modules(a, b, step))))
    return ProfileDiff(
        names=names,
        differences=(*differences(a, b, about), *all_alike(modules, step)),
        step=CostChange("step", "step", a.step_median, b.step_median, word, errors),
        parts=tuple(_parts(a, b, step)),
        modules=modules,
        ops=tuple(_ops(a, b, step)),
        memory=tuple(_memory(a, b)),
    )


def to_json(comparison: ProfileDiff) -> dict[str, Any]:
    """The stable shape of `clew profile --compare --json`."""
    data: dict[str, Any] = plain(comparison)
    return {"version": 1, **data}


def _judged(
    before: float,
    after: float,
    error: float,
    whole: float,
    steps: int,
    words: tuple[str, str] = (SLOWER, FASTER),
) -> str:
    """Whether it is beyond the noise and relevant. With few steps the noise itself is uncertain."""
    difference = abs(after - before)
    beyond = SURE * (1 + 3 / max(steps, 1)) * error
    least = max(beyond, FLOOR * max(before, after), RELEVANT * whole)
    if not difference > least:
        return NOISE
    return words[0] if after > before else words[1]


def _one_sided(value: float, whole: float, word: str) -> str:
    return word if value > RELEVANT * whole else NOISE


def _steps(profile: Profile) -> int:
    return max((part.steps for part in profile.parts), default=profile.detailed)


def _parts(a: Profile, b: Profile, step: float) -> Iterator[CostChange]:
    ours, theirs = ({p.name: p for p in side.parts} for side in (a, b))
    for name in dict.fromkeys((*ours, *theirs)):
        yield _part(name, ours.get(name), theirs.get(name), step)


def _part(name: str, one: PartCost | None, other: PartCost | None, step: float) -> CostChange:
    before, after = (side.median if side else 0.0 for side in (one, other))
    error = math.hypot(*(median_error(side) for side in (one, other) if side is not None))
    few = min(side.steps for side in (one, other) if side is not None)
    return CostChange("part", name, before, after, _judged(before, after, error, step, few), error)


def _modules(a: Profile, b: Profile, step: float) -> Iterator[CostChange]:
    """By path and type: another type under the same name is another module."""
    ours, theirs = ({(m.module, m.type): m for m in side.modules} for side in (a, b))
    for key in dict.fromkeys((*ours, *theirs)):
        yield _module(ours.get(key), theirs.get(key), step)


def _module(one: ModuleCost | None, other: ModuleCost | None, step: float) -> CostChange:
    known = one or other
    assert known is not None
    if one is None or other is None:
        word = _one_sided(known.total, step, NEW if one is None else GONE)
        before, after = (side.total if side else None for side in (one, other))
        return CostChange("module", known.module, before, after, word, 0.0, known.type)
    error = math.hypot(mean_error(one), mean_error(other))
    word = _judged(one.total, other.total, error, step, min(one.steps, other.steps))
    return CostChange("module", known.module, one.total, other.total, word, error, known.type)


def _marked(changes: list[CostChange]) -> Iterator[CostChange]:
    """Whether direct submodules account for a module's difference."""
    inside: dict[str, list[CostChange]] = {}
    paths = {change.name for change in changes}
    for change in changes:
        around = enclosing_module(change.name, paths)
        if around is not None and change.significant:
            inside.setdefault(around, []).append(change)
    for change in changes:
        same = [c.difference for c in inside.get(change.name, []) if c.difference * change.difference > 0]
        through = abs(sum(same)) >= EXPLAINED * abs(change.difference) if same else False
        yield replace(change, explained=True) if through else change


def all_alike(modules: Sequence[CostChange], step: float) -> Iterator[str]:
    """Whether everything became slower by the same factor: that is the machine, or the batch size."""
    large = [m for m in modules if m.before and m.after and min(m.before, m.after) > ALIKE_FROM * step]
    ratios = [m.after / m.before for m in large if m.before and m.after]
    changed = sum(m.significant for m in large)
    if len(large) >= FEWEST_ALIKE and changed >= 0.8 * len(large) and max(ratios) < ALIKE * min(ratios):
        factor = sorted(ratios)[len(ratios) // 2]
        yield f"all modules take {factor:.2g}x the time: was the machine busier, or the input larger?"


def _ops(a: Profile, b: Profile, step: float) -> Iterator[CostChange]:
    """By module and op, for all shapes."""
    ours, theirs = _op_times(a), _op_times(b)
    for key in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(key), theirs.get(key)
        name = f"{key[1].removeprefix('aten::')} in {key[0]}" if key[0] else key[1].removeprefix("aten::")
        error = math.hypot(*(piece_error(side, max(one or 0.0, other or 0.0)) for side in (a, b)))
        word = _judged(one or 0.0, other or 0.0, error, step, min(a.detailed, b.detailed))
        if word != NOISE and (one is None or other is None):
            word = NEW if one is None else GONE
        yield CostChange("op", name, one, other, word, error)


def _op_times(profile: Profile) -> dict[tuple[str, str], float]:
    times: dict[tuple[str, str], float] = {}
    for op in profile.ops:
        times[op.module, op.op] = times.get((op.module, op.op), 0.0) + op.forward + op.backward
    return times


def _memory(a: Profile, b: Profile) -> Iterator[CostChange]:
    """Tensors at the peak and by kind repeat exactly; the process's memory does not."""
    if not a.memory.peak or not b.memory.peak:  # not measured on one side
        return
    peak = float(max(a.memory.peak, b.memory.peak))
    sizes = [("tensors at the peak", float(a.memory.peak), float(b.memory.peak))]
    for kind in dict.fromkeys((*a.memory.kinds, *b.memory.kinds)):
        sizes.append((kind, float(a.memory.kinds.get(kind, 0)), float(b.memory.kinds.get(kind, 0))))
    for name, before, after in sizes:
        if before or after:
            yield _memory_change(name, before, after, peak)
    processes = [_whole_process(side) for side in (a, b)]
    if all(processes):
        yield _memory_change("all processes", processes[0], processes[1], max(processes))


def _memory_change(name: str, before: float, after: float, whole: float) -> CostChange:
    word = _judged(before, after, 0.0, whole, 1, (LARGER, SMALLER))
    return CostChange("memory", name, before, after, word)


def _whole_process(profile: Profile) -> float:
    """Counts shared pages once, if the system reports them."""
    return float(sum(p.pss if p.pss is not None else p.rss for p in profile.memory.processes))


def ordered(changes: Sequence[CostChange]) -> list[CostChange]:
    """Those that count, the largest difference first; without modules explained by their submodules."""
    counting = [change for change in changes if change.significant and not change.explained]
    return sorted(counting, key=lambda change: -abs(change.difference))


def median_error(part: PartCost) -> float:
    return _of_median(part.median, part.p95, part.steps)


def step_error(profile: Profile) -> float:
    return _of_median(profile.step_median, profile.step_p95, _steps(profile))


def mean_error(module: ModuleCost) -> float:
    """The standard error of a module's time, from its spread over the steps."""
    if module.steps < 2 or module.spread <= 0:
        return UNKNOWN * module.total
    return module.spread / math.sqrt(min(module.steps, INDEPENDENT))


def piece_error(profile: Profile, seconds: float) -> float:
    """The standard error of the mean of a piece of a step whose own spread is not known.

    A disturbance of a step (the system runs something else) hits its pieces at random, in proportion to their
    length: a piece with a share f of the step has a share f of its variance, which is a lot for a small one.
    """
    spread = (profile.step_p95 - profile.step_median) / P95
    if spread <= 0:
        spread = UNKNOWN * profile.step_median
    if profile.detailed_step > 0 and profile.step_median > 0:
        spread *= max(profile.detailed_step / profile.step_median, 1.0)
    return spread * math.sqrt(min(profile.of_step(seconds), 1.0) / max(profile.detailed, 1))


def _of_median(median: float, p95: float, steps: int) -> float:
    """A long tail makes p95 large and the median look less certain than it is: the safe side."""
    if steps < 2 or p95 < median:
        return UNKNOWN * median
    return MEDIAN * (p95 - median) / P95 / math.sqrt(min(steps, INDEPENDENT))


def differences(
    a: Profile, b: Profile, about: tuple[RunMeta, RunMeta] = (RunMeta(), RunMeta())
) -> Iterator[str]:
    """A sentence for each; empty if the two are comparable."""
    for name, one, other in _settings(a, b, about):
        if one != other and one and other:
            yield f"{name}: {one} and {other}"
    ours, theirs = batch_size(a), batch_size(b)
    if ours and theirs and not _close(ours, theirs, SAME):
        yield f"samples per step: about {ours:.0f} and {theirs:.0f}; times are per step"
    if a.roof and b.roof and not _close(a.roof.flops, b.roof.flops, SAME_ROOF):
        best = [short(roof.flops, "FLOP/s") for roof in (a.roof, b.roof)]
        yield f"peak speed of the machine: {best[0]} and {best[1]}"


def _settings(a: Profile, b: Profile, about: tuple[RunMeta, RunMeta]) -> Iterator[tuple[str, str, str]]:
    one, other = about
    yield "machine", one.hostname or "", other.hostname or ""
    yield "device", a.device, b.device
    yield "threads", str(a.threads), str(b.threads)
    yield "cores", str(a.cores), str(b.cores)
    for name in ("torch", "python"):
        yield name, _version(one, name), _version(other, name)
    yield "arguments", " ".join(one.args), " ".join(other.args)


def _version(meta: RunMeta, name: str) -> str:
    return str(meta.versions.get(name) or "")


def batch_size(profile: Profile) -> float | None:
    """From throughput and time, which were both recorded."""
    speed = profile.samples_per_second
    return speed * profile.step_median if speed and profile.step_median > 0 else None


def _close(one: float, other: float, tolerance: float) -> bool:
    return abs(one - other) <= tolerance * max(abs(one), abs(other))
