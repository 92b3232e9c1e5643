"""The fact `culprit`: which operation produced the first NaN or infinity, as seen in a replay of the
step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clew.checks.evidence.recorded_facts import flag, names, rows, text, whole
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import counted
from clew.records.finding import Evidence
from clew.records.site import Site

SHOWN = 3  # elements that are named
MOST_SAMPLES = 8


@dataclass(frozen=True)
class CulpritReading:
    """What is known of it; every field may be missing."""

    step: int
    found: bool
    reason: str | None
    phase: str
    op: str
    result: str
    why: str
    fix: str
    site: Site
    code: str | None
    inputs: tuple[Mapping[str, Any], ...]
    elements: tuple[str, ...]
    elements_of: str
    element_count: int  # of those responsible, listed or not
    samples: tuple[int, ...]
    sample_count: int
    batch: int
    call: tuple[int, int] | None
    micro_batch: tuple[int, int] | None
    notes: tuple[str, ...]
    reproduced: bool = True  # the step went as it had gone
    by_update: bool = False  # a parameter, broken by an update
    made_by_program: bool = False  # not found, but known not to be the data

    @classmethod
    def read(cls, step: int, data: Mapping[str, Any]) -> CulpritReading:
        phase, op = text(data.get("phase")) or "forward", text(data.get("op")) or "an operation"
        file, line = text(data.get("file")), whole(data.get("line"))
        module, root = text(data.get("module")), text(data.get("root"))
        return cls(
            step=step,
            found=flag(data.get("found")),
            reason=text(data.get("reason")),
            phase=phase,
            op=op,
            result="NaN" if data.get("result") == "nan" else "infinite",
            why=text(data.get("why")) or "",
            fix=text(data.get("fix")) or "",
            site=Site(module=module, op=op, file=file, line=line, phase=phase, root=root),
            code=text(data.get("code")),
            inputs=tuple(rows(data.get("inputs"))),
            elements=tuple(_elements(data)),
            elements_of=text(data.get("elements_of")) or "the result",
            element_count=whole(data.get("element_count")) or 0,
            samples=_wholes(data.get("samples")),
            sample_count=whole(data.get("sample_count")) or 0,
            batch=whole(data.get("batch")) or 0,
            call=_pair(data.get("call")),
            micro_batch=_pair(data.get("micro_batch")),
            notes=names(data.get("notes")),
            reproduced=data.get("reproduced") is not False,
            by_update=phase == "parameter" and data.get("by_update") is not False,
            made_by_program=flag(data.get("computed")),
        )

    @property
    def is_data(self) -> bool | None:
        """Whether it was the batch; None: not known."""
        if self.found:
            return self.phase == "batch"
        return False if self.made_by_program else None

    @property
    def computed(self) -> bool:
        """Made by an operation, not brought in by the batch or the parameters."""
        return self.phase in ("forward", "backward")

    def because(self, module: str | None) -> str:
        """The part of the message that says why."""
        if not self.computed:
            return self.why
        place = f" in {module}" if module else ""
        what = f"the gradient of {self.op}{place}" if self.phase == "backward" else f"{self.op}{place}"
        which = [f"call {self.call[0]} of {self.call[1]} on this line"] if self.call else []
        which += [f"micro-batch {self.micro_batch[0]}"] if self.micro_batch else []
        when = f" ({', '.join(which)})" if which else ""
        return f"{what} is {self.result}{when}: {self.why}"

    def evidence(self) -> Iterator[Evidence]:
        """What a person can verify: who it was comes first, for not all of it may be shown."""
        if self.samples:
            yield Evidence(samples_of(self.samples, self.batch, self.sample_count))
        if self.elements:
            places = ", ".join(self.elements[:SHOWN])
            others = max(self.element_count, len(self.elements)) - SHOWN
            more = f" and {counted(others, 'other element')}" if others > 0 else ""
            yield Evidence(f"{self.elements_of} at {places}{more}")
        for row in self.inputs[:4]:
            yield Evidence(_input(row))
        for note in self.notes:
            yield Evidence(note)
        if self.code:
            yield Evidence(f"the line: {self.code}")


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


def culprit_at(run: RunView, step: int) -> CulpritReading | None:
    """What running that very step again has found."""
    found = [CulpritReading.read(f.step, f.data) for f in run.facts("culprit") if f.step == step]
    return next((c for c in found if c.found and c.why), None)


def first_bad(run: RunView, signal: str) -> tuple[int | None, Series | None]:
    """The earliest NaN or infinity of a signal over all sites."""
    hits = [(step, s) for _, s in run.series(signal, "train") if (step := s.first_nonfinite()) is not None]
    return min(hits, key=lambda hit: hit[0], default=(None, None))


def growth(
    run: RunView, step: int, culprit: CulpritReading | None, shown: Series | None
) -> Iterator[Evidence]:
    """How it came: where an update broke a parameter, the last steps' gradients and updates."""
    if culprit is None or not culprit.by_update:
        return
    for signal in ("loss", "grad.norm"):
        for _, series in run.series(signal, "train"):
            if shown is None or (series.signal, series.site) != (shown.signal, shown.site):
                yield from _chain(series.before(step), signal)
    for site, series in run.series("update.ratio"):
        if culprit.op in (f"{site.module}.{site.param}", site.param):
            yield from _chain(series.before(step), f"relative change of {culprit.op}")


def _chain(series: Series, what: str) -> Iterator[Evidence]:
    last = series.last(5)
    if len(last):
        yield series.last(60).evidence(f"{what}, last steps: {' → '.join(f'{v:.3g}' for v in last.values)}")


def _input(row: Mapping[str, Any]) -> str:
    sizes = row.get("shape")
    shape = ", ".join(map(str, sizes)) if isinstance(sizes, (list, tuple)) else "?"
    told = f"{row.get('name', 'input')}: {row.get('dtype', '?')} ({shape})"
    low, high, bad = row.get("min"), row.get("max"), whole(row.get("nonfinite")) or 0
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        told += f", from {low:.4g} to {high:.4g}"
    return told + (f", {bad} non-finite" if bad else "")


def _elements(data: Mapping[str, Any]) -> Iterator[str]:
    places, values = data.get("elements"), data.get("element_values")
    if not isinstance(places, (list, tuple)):
        return
    known = list(values) if isinstance(values, (list, tuple)) else []
    for number, place in enumerate(places):
        value = known[number] if number < len(known) else None
        shown = f" = {value:.4g}" if isinstance(value, (int, float)) else f" = {value}" if value else ""
        if _wholes(place):  # a single number has no place
            yield f"[{', '.join(map(str, _wholes(place)))}]{shown}"


def _wholes(value: object) -> tuple[int, ...]:
    return tuple(v for v in value if whole(v) is not None) if isinstance(value, (list, tuple)) else ()


def _pair(value: object) -> tuple[int, int] | None:
    numbers = _wholes(value)
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None
