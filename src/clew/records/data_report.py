"""Everything that `clew data` found, as plain data for `show`. No torch here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from clew.records.dataset_survey import Between, DatasetSurvey
from clew.records.finding import Finding
from clew.records.loader_speed import MeasuredLoader
from clew.records.sample_views import PipelineLook, SamplePath, ValueView
from clew.records.verdict import Verdict


@dataclass(frozen=True)
class Report:
    """Loader by loader, the one that trains first; what was not asked for is empty."""

    looks: tuple[PipelineLook, ...] = ()
    measured: tuple[MeasuredLoader, ...] = ()
    surveys: tuple[DatasetSurvey, ...] = ()
    betweens: tuple[Between, ...] = ()
    verdict: Verdict = field(default_factory=Verdict)
    what: str = ""  # the script, or the class of what was handed over
    seconds: float = 0.0
    notes: tuple[str, ...] = ()  # what could not be done, and why

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, the worst first."""
        return self.verdict.findings

    @property
    def samples(self) -> tuple[ValueView, ...]:
        """As the datasets return them."""
        return tuple(sample for shown in self.looks for sample in shown.samples)

    @property
    def speeds(self) -> MeasuredLoader | None:
        """Of the loader that trains."""
        return self.measured[0] if self.measured else None

    @property
    def survey(self) -> DatasetSurvey | None:
        """Of the data that is trained on; `surveys` has all splits."""
        return self.surveys[0] if self.surveys else None

    @property
    def way(self) -> SamplePath | None:
        """The stages of the sample that was asked for."""
        return next((shown.way for shown in self.looks if shown.way is not None), None)


@dataclass(frozen=True)
class DataOptions:
    """What `clew data` adds to a run."""

    loader: str = ""  # its name in the script, or number; empty: all that were seen
    samples: int = 8  # to be shown
    sample: int | None = None  # this one, stage by stage
    bare: bool = False  # in this process, without workers
    measure: bool = True  # how fast, stage by stage
    sweep: bool = False  # over workers and prefetching
    judge: bool = True  # look through the data set
    all: bool = False  # through all of it, not a sample
    time_limit: float = 60.0  # seconds for all of it
    html_path: Path | None = None
    go_on: bool = False  # train on afterwards instead of ending the script
