"""DATA021 inconsistent-samples

## What it detects
Samples whose fields differ in shape or type, or are missing, where they must not: tensors of different
sizes that are stacked into one batch, an image with one channel among those with three, a float64 among
float32, a key that some samples lack.

## Why is this bad?
`default_collate` raises as soon as two such samples meet in a batch, which may take many steps. Where it
does not, a batch is silently converted to the wider type, or the model gets input it was not built for.

## How to fix
Convert all samples to the same form in `__getitem__` (`.convert("RGB")`, `Resize`, `.float()`), or give
the loader a `collate_fn` that pads them.

## Known problems
With a custom collate function, samples may have different sizes: then only a few that differ in the
number of dimensions, in channels or in type are reported.

## References
- PyTorch docs, torch.utils.data: working with collate_fn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.survey_facts import by_index, called, place_of, samples_read, surveys
from clew.checks.run_view import RunView
from clew.records.dataset_survey import Count, DatasetSurvey, FieldSurvey
from clew.records.facts.document_facts import SurveyFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.plural import counted


@dataclass(frozen=True)
class InconsistentSamples(Check):
    id = "DATA021"
    name = "inconsistent-samples"
    needs = (SurveyFact,)
    confidence = "certain"

    few: float = 0.05  # share of samples of another form; with more, it is probably intended

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        found = surveys(run)
        for survey in found:
            for result in (self._lacking(survey), *(self._field(survey, f) for f in survey.fields)):
                if result is not None:
                    severity, words, others, fix = result
                    yield self.finding(
                        severity,
                        message=f"{words}{called(survey, found)}",
                        fix=fix,
                        site=place_of(survey),
                        step=0,
                        evidence=[*_examples(others), samples_read(survey)],
                    )
                    break

    def _lacking(self, survey: DatasetSurvey) -> tuple[Severity, str, Sequence[Count], str] | None:
        if not survey.missing_fields or not survey.stacked:
            return None
        field = survey.missing_fields[0]
        verb = "has" if field.samples == 1 else "have"
        words = f"{counted(field.samples, 'sample')} of {survey.samples_read:,} {verb} no field {field.what}"
        return Severity.ERROR, words, (), "return the same fields for every sample"

    def _field(
        self, survey: DatasetSurvey, field: FieldSurvey
    ) -> tuple[Severity, str, Sequence[Count], str] | None:
        name = f"field {field.name}" if len(survey.fields) > 1 else "the samples"
        others = field.shapes[1:]
        if (
            others
            and field.kind not in ("text", "object")
            and (survey.stacked or self._has_odd_shapes(field))
        ):
            words = f"{name} has different shapes: {_counted(field.shapes)}"
            severity = Severity.ERROR if survey.stacked else Severity.WARNING
            return severity, words, others, _shape_fix(field)
        others = field.dtypes[1:]
        if others and _rest(field.dtypes) <= self.few * field.samples and not _are_numbers(field):
            words = f"{name} has different types: {_counted(field.dtypes)}"
            severity = Severity.ERROR if survey.stacked and _unstackable(others) else Severity.WARNING
            return severity, words, others, f"convert every sample to {field.dtypes[0].what}"
        return None

    def _has_odd_shapes(self, field: FieldSurvey) -> bool:
        """Whether a few samples have another number of dimensions, or of channels; sizes may differ."""
        if _rest(field.shapes) == 0 or field.kind != "image":
            usual = field.shapes[0].what.count("×")
            odd = sum(c.samples for c in field.shapes if c.what.count("×") != usual)
        else:
            usual_channels = _channels(field.shapes[0].what)
            odd = sum(c.samples for c in field.shapes if _channels(c.what) != usual_channels)
        return 0 < odd <= self.few * field.samples


def _channels(shape: str) -> str:
    sizes = shape.split("×")
    if len(sizes) != 3:
        return f"{len(sizes)} dimensions"
    return next((n for n in (sizes[0], sizes[2]) if n in ("1", "2", "3", "4")), "other")


def _rest(counts: Sequence[Count]) -> int:
    return sum(c.samples for c in counts[1:])


def _are_numbers(field: FieldSurvey) -> bool:
    """Whether these are plain numbers of Python, which may be mixed: they become one tensor."""
    return {c.what for c in field.dtypes} <= {"int", "float", "bool"}


def _unstackable(others: Sequence[Count]) -> bool:
    return any(c.what in ("NoneType", "str", "bytes", "object") or c.what.startswith("PIL") for c in others)


def _counted(counts: Sequence[Count]) -> str:
    text = ", ".join(f"{c.samples:,} of {c.what}" for c in counts[:3])
    rest = sum(c.samples for c in counts[3:])
    return f"{text} and {rest:,} of other kinds" if rest else text


def _examples(others: Sequence[Count]) -> Iterator[Evidence]:
    for count in others[:3]:
        if count.first:
            yield Evidence(f"{count.what}: samples {by_index(count.first)}")


def _shape_fix(field: FieldSurvey) -> str:
    if field.kind == "image":
        return 'transforms.Resize((224, 224)) and image.convert("RGB") in __getitem__'
    if field.kind in ("tokens", "wave", "vector"):
        return "DataLoader(…, collate_fn=lambda rows: pad_sequence([x for x, y in rows], batch_first=True))"
    return "give all samples the same shape in __getitem__, or pad them in a collate_fn"
