"""The base class of all experiments: a question, and one method that tries it and returns plain numbers.

It judges nothing. What it found is written to the run as the fact `experiment.<name>`, and the
check of the same name reads it there; so a verdict read back later is the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from clew.labs.snapshot.time_limit import Clock
from clew.records.codec import json_float

if TYPE_CHECKING:
    from clew.labs.snapshot.subject import Subject

DONE, UNJUDGED = "done", "unjudged"
MOST_POINTS = 400  # of a plotted line


@dataclass(frozen=True)
class Plot:
    """A line that a person can look at."""

    title: str
    x: Sequence[float]
    y: Sequence[float]
    x_label: str = "step"
    y_label: str = "loss"
    log_x: bool = False

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
    """What an experiment found: numbers for the check, and what a person can see."""

    data: Mapping[str, Any]  # JSON's own types; numbers may be non-finite
    plots: Sequence[Plot] = ()
    exhibits: Sequence[Mapping[str, Any]] = ()  # samples, as `clew.labs.snapshot.sample_exhibits` makes them


@dataclass(frozen=True)
class Experiment(ABC):
    """Base of all experiments: fields are settings, each with its unit and a reason."""

    name: ClassVar[str]  # of the check that judges it
    question: ClassVar[str]  # "can it learn one batch by heart?"
    rank: ClassVar[int]  # the order of running: cheap and telling ones first (0–100)

    @abstractmethod
    def run(self, subject: Subject, clock: Clock) -> Result:
        """Try it. Raise CannotJudge where the question makes no sense or can't be asked."""
