"""The parts of a step in seconds, the loaders at work in it, and the gain from saving time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clew.checks.evidence.data_feed import training_loaders
from clew.checks.run_view import RunView
from clew.records.facts.document_facts import TriedChangeFact
from clew.records.facts.profile_facts import BuiltTensorsFact, LoadingFact
from clew.records.facts.step_facts import LoaderFact
from clew.records.finding import Evidence, Severity
from clew.records.site import Site
from clew.records.step_costs import FEWEST_TIMED, PartCost, Profile
from clew.records.tried_changes import TriedChange

# Share of a step that can be saved: something always remains. No threshold: it only limits the gain that
# is shown, to a factor of 20, so that rounding or a wrong time can't make it infinite or negative.
MOST = 0.95


@dataclass(frozen=True)
class WorthwhileGain:
    """The least gain for which a change is worth it."""

    least: float = 1.05  # times as fast; a smaller gain is lost in the noise and not worth a change
    warning: float = 1.3  # the same, for a warning; above it, a run wastes a quarter of its time or more

    def severity(self, gain: float) -> Severity | None:
        """How serious it is to miss a gain; None: it is not worth a change."""
        if not gain >= self.least:
            return None
        return Severity.WARNING if gain > self.warning else Severity.ADVICE

    def attempts(self, run: RunView, name: str) -> Iterator[tuple[TriedChange, float, Severity]]:
        """The attempts with a change that helped by enough, with their gains."""
        for attempt in attempts(run, name):
            gain = gain_of(attempt.gain)
            severity = self.severity(gain) if helped(attempt) else None
            if severity is not None:
                yield attempt, gain, severity


@dataclass(frozen=True)
class Costs:
    """The seconds of a step, in total and by part, as they would be without Clew."""

    profile: Profile
    step: float
    parts: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.parts.get(name, 0.0)

    def median(self, name: str) -> float:
        """The median of a part that every step has: a few steps that were interrupted don't move it."""
        return next((part.median for part in self.profile.parts if part.name == name), 0.0)

    @property
    def detailed_scale(self) -> float:
        """What to multiply times of detailed steps by: those take longer than other steps."""
        detailed = self.profile.detailed_step
        return min(self.step / detailed, 1.0) if detailed > 0 else 1.0

    def gain(self, saved: float) -> float:
        """How many times as fast a step is that takes so many seconds less."""
        return gain_of(saved / self.step)


def costs_of(run: RunView) -> Costs | None:
    """The costs of a step; None if there is no profile, or if it has too few steps."""
    profile = run.profile()
    if profile is None or max((p.steps for p in profile.parts), default=0) < FEWEST_TIMED:
        return None
    clew = next((p for p in profile.parts if p.name == "clew"), PartCost("clew", 0.0, 0.0, 0.0))
    own, step = clew.share, profile.step_median - clew.median  # medians: one step may be held up for long
    if not step > 0 or not own < 1:
        return None
    parts = {p.name: p.share / (1 - own) * step for p in profile.parts if p.name != "clew"}
    return Costs(profile, step, parts)


def gain_of(share: float) -> float:
    """How many times as fast a step is that takes this share less time."""
    return 1 / (1 - min(max(share, 0.0), MOST))


def expected(gain: float, why: str, *, measured: bool = False) -> Evidence:
    """`expected gain 1.8x: 41 of 92 ms per step wait for data`"""
    return Evidence(f"{'measured' if measured else 'expected'} gain {times(gain)}: {why}", values=(gain,))


def times(gain: float) -> str:
    return f"{gain:.2f}x" if gain < 1.95 else f"{_two(gain)}x"


def _two(value: float) -> str:
    """Two digits, or all those before the point."""
    return f"{value:.2g}" if value < 99.5 else f"{value:.0f}"


def duration(seconds: float) -> str:
    """`41 ms`, `230 µs`, `1.2 s`"""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def size(count: float) -> str:
    """`84 MiB`, `1.2 GiB`: in powers of 1024, as in the tables"""
    for unit, width in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= 0.9995 * width:
            return f"{count / width:.3g} {unit}"
    return f"{count:.0f} B"


def of_step(part: float, costs: Costs) -> str:
    """`41 of 92 ms per step`"""
    if costs.step >= 1.0:
        return f"{_two(part)} of {costs.step:.3g} s per step"
    return f"{_two(part * 1e3)} of {costs.step * 1e3:.3g} ms per step"


@dataclass(frozen=True)
class Loading:
    """A training loader, and what the profile has recorded of it."""

    loader: LoaderFact
    made: Site  # where it is created, or else where it is iterated over
    seen: LoadingFact  # empty if nothing was recorded


def loadings(run: RunView) -> list[Loading]:
    """The loaders that feed training."""
    seen = {fact.loader: fact for fact in run.known(LoadingFact)}
    known = training_loaders(run)
    return [Loading(loader, _made(loader), seen.get(loader.index, LoadingFact())) for loader in known]


def _made(loader: LoaderFact) -> Site:
    made = Site(op="loader", file=loader.made_file, line=loader.made_line)
    return made if loader.made_file else loader.site


def attempts(run: RunView, *names: str) -> list[TriedChange]:
    """What `clew profile --try` measured of these changes, the greatest gain first."""
    found = [fact.content for fact in run.known(TriedChangeFact) if fact.content is not None]
    return sorted((one for one in found if one.name in names), key=lambda a: -a.gain)


def helped(attempt: TriedChange) -> bool:
    """Whether a change saves time beyond noise, and gives the same numbers up to rounding."""
    return attempt.tried and attempt.clear and attempt.gain > 0 and attempt.same is not False


def why_not_tried(run: RunView, name: str) -> str | None:
    """Why `clew profile --try` has no result for a change; None if it has one."""
    tried = attempts(run, name)
    return (tried[0].reason or None) if tried else "not measured; run clew profile --try"


def tried(attempt: TriedChange) -> Evidence:
    """The gain that an attempt has measured."""
    return expected(
        gain_of(attempt.gain),
        f"{duration(attempt.after)} instead of {duration(attempt.before)} per step on a snapshot, over "
        f"{attempt.rounds} rounds",
        measured=True,
    )


def only_model(run: RunView) -> Site:
    """The model of the run; the first of several."""
    return Site("", root=next(iter(run.models), None))


@dataclass(frozen=True)
class Built:
    """Calls that build tensors on one line."""

    site: Site
    function: str
    share: float  # of the step
    needed: float  # share that it would take from one array or tensor
    elements: int

    def gain(self, costs: Costs) -> float:
        """How many times as fast a step would be from one array or tensor."""
        return costs.gain((self.share - self.needed) * costs.step)

    def expected(self, costs: Costs) -> Evidence:
        """The gain, and what the calls take now."""
        return expected(self.gain(costs), of_step(self.share * costs.step, costs))

    def least(self, costs: Costs) -> str:
        """The time of the same in one piece: `230 µs per step`."""
        return f"{duration(self.needed * costs.step)} per step"


def worthwhile_builds(run: RunView, of: str, gain: WorthwhileGain) -> Iterator[tuple[Built, Costs, Severity]]:
    """The lines that build tensors from lists of `arrays` or `numbers`, where that is worth saving.

    The most expensive come first.
    """
    costs = costs_of(run)
    found = [_built(fact) for fact in run.known(BuiltTensorsFact) if fact.of == of]
    for built in sorted(found, key=lambda built: built.needed - built.share):
        severity = gain.severity(built.gain(costs)) if costs is not None else None
        if costs is not None and severity is not None:
            yield built, costs, severity


def _built(fact: BuiltTensorsFact) -> Built:
    function = fact.function or "tensor"
    step = max(fact.step_seconds, 1e-9)
    site = Site(op=function, file=fact.file, line=fact.line)
    return Built(site, function, min(fact.seconds / step, 1.0), min(fact.needed / step, 1.0), fact.elements)
