"""The base class of all experiments: a question, and one method that tries it and returns plain numbers.

It judges nothing. Its result is written to the run as the fact `experiment.<name>`, and the
check of the same name reads it there, so a verdict read back later is the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from clew.labs.snapshot.time_limit import Clock
from clew.records.facts.experiment_facts import DONE, ExperimentFact, RecordedPlot
from clew.records.finding import Exhibit

if TYPE_CHECKING:
    from clew.labs.snapshot.subject import Subject

MOST_POINTS = 400  # of a plotted line


@dataclass(frozen=True)
class Plot:
    """A line to plot."""

    title: str
    x: Sequence[float]
    y: Sequence[float]
    x_label: str = "step"
    y_label: str = "loss"
    log_x: bool = False

    @classmethod
    def of_losses(cls, title: str, losses: Sequence[float]) -> Plot:
        """The loss, step by step."""
        return cls(title, range(len(losses)), losses)

    def recorded(self) -> RecordedPlot:
        """At most MOST_POINTS of its points, evenly spaced."""
        stride = max(1, -(-len(self.x) // MOST_POINTS))
        x, y = (tuple(float(v) for v in values[::stride]) for values in (self.x, self.y))
        return RecordedPlot(self.title, x, y, self.x_label, self.y_label, self.log_x)


@dataclass(frozen=True)
class Result:
    """The result of an experiment: numbers for the check, and plots and samples for people."""

    data: ExperimentFact | Mapping[str, Any]  # a mapping from experiments without a fact of their own
    plots: Sequence[Plot] = ()
    exhibits: Sequence[Exhibit | Mapping[str, Any]] = ()  # samples; as a mapping: `{kind, caption, data}`

    def fact(self) -> ExperimentFact:
        """What is recorded of it."""
        found = self.data if isinstance(self.data, ExperimentFact) else ExperimentFact(data=self.data)
        plots = tuple(plot.recorded() for plot in self.plots)
        shown = (e if isinstance(e, Exhibit) else Exhibit.from_json(dict(e)) for e in self.exhibits)
        return replace(found, status=DONE, plots=plots, exhibits=tuple(shown))


@dataclass(frozen=True)
class Experiment(ABC):
    """Base of all experiments: fields are settings, each with its unit and a reason."""

    name: ClassVar[str]  # name of the check that judges it
    question: ClassVar[str]  # "can it memorise one batch?"
    rank: ClassVar[int]  # order of running (0–100): cheap and informative ones first
    needs_optimizer: ClassVar[bool] = False  # judges the program's own; others use any that learns

    @abstractmethod
    def run(self, subject: Subject, clock: Clock) -> Result:
        """Run the experiment. Raise CannotJudge where it makes no sense or is not possible."""
