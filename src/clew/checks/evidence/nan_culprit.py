"""The fact `culprit`: which operation produced the first NaN or infinity, as seen in a replay of the
step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.records import signals
from clew.records.facts.nan_facts import CulpritFact
from clew.records.finding import Evidence
from clew.records.plural import counted
from clew.records.signal_types import Signal
from clew.records.site import Site

SHOWN = 3  # elements that are named
MOST_SAMPLES = 8


@dataclass(frozen=True)
class CulpritReading:
    """What a replay found, in the words of a finding."""

    fact: CulpritFact

    @property
    def phase(self) -> str:
        return self.fact.phase or "forward"

    @property
    def op(self) -> str:
        return self.fact.op or "an operation"

    @property
    def site(self) -> Site:
        fact = self.fact
        return Site(fact.module, self.op, fact.file, fact.line, self.phase, fact.root)

    @property
    def is_data(self) -> bool | None:
        """Whether it was the batch; None: not known."""
        if self.fact.found:
            return self.phase == "batch"
        return False if self.fact.computed else None

    @property
    def computed(self) -> bool:
        """Made by an operation, not brought in by the batch or the parameters."""
        return self.phase in ("forward", "backward")

    @property
    def by_update(self) -> bool:
        """A parameter that an update of the optimizer made non-finite."""
        return self.phase == "parameter" and self.fact.by_update

    def because(self, module: str | None) -> str:
        """The part of the message that says why."""
        fact = self.fact
        if not self.computed:
            return fact.why
        place = f" in {module}" if module else ""
        what = f"the gradient of {self.op}{place}" if self.phase == "backward" else f"{self.op}{place}"
        which = [f"call {fact.call[0]} of {fact.call[1]} on this line"] if fact.call else []
        which += [f"micro-batch {fact.micro_batch[0]}"] if fact.micro_batch else []
        when = f" ({', '.join(which)})" if which else ""
        return f"{what} is {'NaN' if fact.result == 'nan' else 'infinite'}{when}: {fact.why}"

    def evidence(self) -> Iterator[Evidence]:
        """What a person can verify. The samples and elements come first, for not all of it may be shown."""
        fact = self.fact
        if fact.samples:
            yield Evidence(samples_of(fact.samples, fact.batch, fact.sample_count))
        elements = list(_elements(fact))
        if elements:
            others = max(fact.element_count, len(elements)) - SHOWN
            more = f" and {counted(others, 'other element')}" if others > 0 else ""
            yield Evidence(f"{fact.elements_of or 'the result'} at {', '.join(elements[:SHOWN])}{more}")
        for row in fact.inputs[:4]:
            yield Evidence(str(row))
        for note in fact.notes:
            yield Evidence(note)
        if fact.code:
            yield Evidence(f"the line: {fact.code}")


def _elements(fact: CulpritFact) -> Iterator[str]:
    """`[2, 1] = 99`: the places of the elements responsible, with their values as far as they are known."""
    for number, place in enumerate(fact.elements):
        value = fact.element_values[number] if number < len(fact.element_values) else None
        shown = f" = {value:.4g}" if isinstance(value, (int, float)) else f" = {value}" if value else ""
        if place:  # a single number has no place
            yield f"[{', '.join(map(str, place))}]{shown}"


def samples_of(samples: Sequence[int], batch: int = 0, count: int = 0) -> str:
    """`3 of 32 samples of the batch: 0, 4, 7`; `count` is how many there are, if not all are listed."""
    count = max(count, len(samples))
    whole_batch = f" of {batch}" if batch else ""
    shown = ", ".join(map(str, samples[:MOST_SAMPLES])) + (", …" if count > MOST_SAMPLES else "")
    if batch and count == batch:
        return f"all {batch} samples of the batch" if batch > 1 else "the only sample of the batch"
    if count == 1 and not batch:
        return f"sample {shown} of the batch"
    return f"{count}{whole_batch} samples of the batch: {shown}"


def replays_of(run: RunView, step: int) -> list[CulpritReading]:
    """What replays of that very step have found: one for the loss, one for the gradients."""
    return [CulpritReading(fact) for fact in run.known(CulpritFact) if fact.step == step]


def culprit_at(run: RunView, step: int) -> CulpritReading | None:
    """The operation that a replay of that very step names."""
    return next((c for c in replays_of(run, step) if c.fact.found and c.fact.why), None)


def first_bad(run: RunView, signal: Signal) -> tuple[int | None, Series | None]:
    """The earliest NaN or infinity of a signal over all sites."""
    hits = [(step, s) for _, s in run.series(signal, "train") if (step := s.first_nonfinite()) is not None]
    return min(hits, key=lambda hit: hit[0], default=(None, None))


def growth(
    run: RunView, step: int, culprit: CulpritReading | None, shown: Series | None
) -> Iterator[Evidence]:
    """Where an update broke a parameter: the loss, gradients and updates of the steps before."""
    if culprit is None or not culprit.by_update:
        return
    for signal in (signals.LOSS, signals.GRAD_NORM):
        for _, series in run.series(signal, "train"):
            if shown is None or (series.signal, series.site) != (shown.signal, shown.site):
                yield from _chain(series.before(step), signal.name)
    for site, series in run.series(signals.UPDATE_RATIO):
        if culprit.op in (f"{site.module}.{site.param}", site.param):
            yield from _chain(series.before(step), f"relative change of {culprit.op}")


def _chain(series: Series, what: str) -> Iterator[Evidence]:
    last = series.last(5)
    if len(last):
        yield series.last(60).evidence(f"{what}, last steps: {' → '.join(f'{v:.3g}' for v in last.values)}")
