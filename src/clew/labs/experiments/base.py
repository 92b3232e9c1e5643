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
from clew.records.codec import json_float
from clew.records.facts.experiment_facts import DONE, ExperimentFact

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

    def to_json(self) -> dict[str, Any]:
        stride = max(1, -(-len(self.x) // MOST_POINTS))
        return {
            "title": self.title,
            "x": [json_float(float(v)) for v in self.x[::stride]],
            "y": [json_float(float(v)) for v in self.y[::stride]],
            "x_label": self.x_label,
            "y_label": self.y_label,
            "log_x": self.log_x,
        }


@dataclass(frozen=True)
class Result:
    """The result of an experiment: numbers for the check, and plots and samples for people."""

    data: ExperimentFact | Mapping[str, Any]  # a mapping from experiments without a fact of their own
    plots: Sequence[Plot] = ()
    exhibits: Sequence[Mapping[str, Any]] = ()  # samples, as `clew.labs.snapshot.sample_exhibits` makes them

    def fact(self) -> ExperimentFact:
        """What is recorded of it."""
        found = self.data if isinstance(self.data, ExperimentFact) else ExperimentFact(data=self.data)
        plots = tuple(plot.to_json() for plot in self.plots)
        return replace(found, status=DONE, plots=plots, exhibits=tuple(self.exhibits))


@dataclass(frozen=True)
class Experiment(ABC):
    """Base of all experiments: fields are settings, each with its unit and a reason."""

    name: ClassVar[str]  # name of the check that judges it
    question: ClassVar[str]  # "can it memorise one batch?"
    rank: ClassVar[int]  # order of running (0–100): cheap and informative ones first

    @abstractmethod
    def run(self, subject: Subject, clock: Clock) -> Result:
        """Run the experiment. Raise CannotJudge where it makes no sense or is not possible."""
