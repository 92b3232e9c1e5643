"""Report of `clew data`: everything it found, as plain data for rendering. No torch here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from clew.records.dataset_survey import Between, DatasetSurvey
from clew.records.finding import Finding
from clew.records.loader_speed import MeasuredLoader
from clew.records.sample_views import LoaderView, SamplePath, ValueView
from clew.records.verdict import Verdict


@dataclass(frozen=True)
class Report:
    """One entry per loader, the training loader first; what was not asked for is empty."""

    loaders: tuple[LoaderView, ...] = ()
    measured: tuple[MeasuredLoader, ...] = ()
    surveys: tuple[DatasetSurvey, ...] = ()
    betweens: tuple[Between, ...] = ()
    verdict: Verdict = field(default_factory=Verdict)
    what: str = ""  # the script, or the class of the object that was passed in
    seconds: float = 0.0
    notes: tuple[str, ...] = ()  # what could not be done, and why

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, the worst first."""
        return self.verdict.findings

    @property
    def samples(self) -> tuple[ValueView, ...]:
        """The samples as the datasets return them."""
        return tuple(sample for shown in self.loaders for sample in shown.samples)

    @property
    def speeds(self) -> MeasuredLoader | None:
        """Speeds of the training loader."""
        return self.measured[0] if self.measured else None

    def measured_of(self, shown: LoaderView) -> list[MeasuredLoader]:
        """What was measured about this loader."""
        return [one for one in self.measured if (one.loader, one.line) == (shown.name, shown.line)]

    @property
    def survey(self) -> DatasetSurvey | None:
        """The survey of the training data; `surveys` has all splits."""
        return self.surveys[0] if self.surveys else None

    @property
    def way(self) -> SamplePath | None:
        """The stages of the sample that was asked for."""
        return next((shown.way for shown in self.loaders if shown.way is not None), None)


@dataclass(frozen=True)
class DataOptions:
    """Options that `clew data` adds to a run."""

    loader: str = ""  # its name in the script, or number; empty: all loaders
    samples: int = 8  # samples to show
    sample: int | None = None  # show this one stage by stage
    bare: bool = False  # in this process, without workers
    measure: bool = True  # measure the speed of each stage
    sweep: bool = False  # over workers and prefetching
    judge: bool = True  # survey the dataset
    all: bool = False  # all of it, not a sample
    time_limit: float = 60.0  # seconds for everything together
    html_path: Path | None = None
    go_on: bool = False  # continue training afterwards instead of ending the script
