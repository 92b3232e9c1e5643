"""What the speed checks share: the parts of a step in seconds, and the gain from a saving."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clew.checks.evidence.data_feed import training_loaders
from clew.checks.evidence.recorded_facts import Data, text, whole
from clew.checks.run_view import RunView
from clew.records.facts.step_facts import LoaderFact
from clew.records.finding import Evidence, Severity
from clew.records.site import Site
from clew.records.step_costs import FEWEST_TIMED, Profile
from clew.records.tried_changes import Attempt

LITTLE = 1.05  # a gain below this is lost in the noise and not worth a change
MUCH = 1.3  # from here on a run wastes a quarter of its time or more
SHORT = 2e-3  # seconds: a batch that is there in less is the overhead of a small example
MOST = 0.95  # of a step that can be saved at all: something always remains


@dataclass(frozen=True)
class Costs:
    """A run's step as it would be without Clew: seconds, all told and by part."""

    profile: Profile
    step: float
    parts: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.parts.get(name, 0.0)

    def gain(self, saved: float) -> float:
        """How many times as fast a step is that takes so much less."""
        return self.step / (self.step - min(max(saved, 0.0), MOST * self.step))


def costs_of(run: RunView) -> Costs | None:
    """None if there is no profile, or too few steps to say anything."""
    profile = run.profile()
    if profile is None or max((p.steps for p in profile.parts), default=0) < FEWEST_TIMED:
        return None
    own = sum(p.share for p in profile.parts if p.name == "clew")
    step = profile.step_median * (1 - own)
    if not step > 0 or not own < 1:
        return None
    parts = {p.name: p.share / (1 - own) * step for p in profile.parts if p.name != "clew"}
    return Costs(profile, step, parts)


def worth(gain: float) -> Severity | None:
    """How loudly to speak of a gain; None: not at all."""
    if not gain >= LITTLE:
        return None
    return Severity.WARNING if gain > MUCH else Severity.ADVICE


def expected(gain: float, why: str, *, measured: bool = False) -> Evidence:
    """`expected gain 1.8x: 41 of 92 ms per step wait for data`"""
    return Evidence(f"{'measured' if measured else 'expected'} gain {times(gain)}: {why}", values=(gain,))


def times(gain: float) -> str:
    return f"{gain:.2f}x" if gain < 1.95 else f"{_two(gain)}x"


def _two(value: float) -> str:
    """Two digits, or all that stand before the point."""
    return f"{value:.2g}" if value < 99.5 else f"{value:.0f}"


def duration(seconds: float) -> str:
    """`41 ms`, `230 µs`, `1.2 s`"""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def size(count: float) -> str:
    """`84 MB`, `1.2 GB`"""
    for unit, width in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
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
    """A training loader, and what was seen of it at work."""

    loader: LoaderFact
    made: Site  # where it is made, or else where it is iterated over
    seen: Data  # the `profile.loading` fact, empty if there is none
    persistent: bool = False

    def number(self, name: str) -> float:
        value = self.seen.get(name)
        fits = isinstance(value, (int, float)) and 0 <= value < float("inf")
        return float(value) if fits and isinstance(value, (int, float)) else 0.0


def loadings(run: RunView) -> list[Loading]:
    """Of the loaders that feed training."""
    seen = {whole(f.data.get("loader")): f.data for f in run.facts("profile.loading")}
    facts = {whole(f.data.get("index")): f.data for f in run.facts("loader")}
    return [
        Loading(
            loader,
            _made(loader, facts.get(loader.index, {})),
            seen.get(loader.index, {}),
            facts.get(loader.index, {}).get("persistent_workers") is True,
        )
        for loader in training_loaders(run)
    ]


def _made(loader: LoaderFact, fact: Data) -> Site:
    file, line = text(fact.get("made_file")), whole(fact.get("made_line"))
    return Site(op="loader", file=file, line=line) if file else loader.site


def attempts(run: RunView, *names: str) -> list[Attempt]:
    """What `clew profile --try` measured of these changes, the greatest gain first."""
    facts = [f.data for f in run.facts("attempt") if f.data.get("name") in names]
    return sorted((Attempt.from_json(data) for data in facts), key=lambda a: -a.gain)


def helped(attempt: Attempt) -> bool:
    """Beyond noise, and to the same numbers up to rounding."""
    return attempt.tried and attempt.clear and attempt.gain > 0 and attempt.same is not False


def times_faster(attempt: Attempt) -> float:
    """The gain of an attempt as a factor."""
    return 1 / (1 - min(attempt.gain, MOST))
