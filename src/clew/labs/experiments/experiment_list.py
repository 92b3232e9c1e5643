"""The list of all experiments: Clew's own, cheap and informative ones first, and those of the user.

The user's own are registered in the process, or installed as a package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from clew.labs import experiments
from clew.labs.experiments.base import Experiment, Result
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import Clock
from clew.records.extensions import CannotRegister, Extensions, built_ins, must_be_named, name_of

TOOLS = "tools"  # what several experiments use; it defines none


def _place(kind: type[Experiment]) -> tuple[int, str]:
    """The position of an experiment in the order: by rank, and equal ranks by file."""
    return kind.rank, kind.__module__


# Every experiment in the folders beside this file, so that a new experiment is a new file and nothing else.
EXPERIMENTS: tuple[type[Experiment], ...] = tuple(
    sorted(built_ins(Experiment, experiments, leave_out={TOOLS}), key=_place)
)
LAST = 100  # the rank of experiments that are not Clew's: after its own


def as_experiment(given: Any, name: str | None = None, question: str = "") -> type[Experiment]:
    """Turn a class, or a function of a subject and a clock, into an experiment class."""
    if isinstance(given, type) and issubclass(given, Experiment):
        must_be_named("an experiment", given.name)
        return given
    if not callable(given):
        raise CannotRegister(f"an experiment is a class or a function, not {type(given).__name__}")
    wanted = must_be_named("an experiment", name or name_of(given))
    return _from_function(given, wanted, question or _first_line(given) or f"{wanted}?")


def _from_function(function: Callable[[Subject, Clock], Any], name: str, question: str) -> type[Experiment]:
    def run(self: Experiment, subject: Subject, clock: Clock) -> Result:
        found = function(subject, clock)
        if isinstance(found, Result):
            return found
        return Result(found if isinstance(found, Mapping) else {"value": found})

    members = {
        "name": name,
        "question": question,
        "rank": LAST,
        "run": run,
        "__doc__": function.__doc__,
        "__module__": getattr(function, "__module__", __name__),
    }
    return type(name, (Experiment,), members)


def _first_line(function: Any) -> str:
    return (getattr(function, "__doc__", None) or "").strip().partition("\n")[0]


EXPERIMENTS_OF_OTHERS: Extensions[type[Experiment]] = Extensions(
    "clew.experiments", lambda given, name: as_experiment(given, name)
)


def register_experiment(given: Any, name: str | None = None, question: str = "") -> None:
    """Add an experiment to those that `clew check` and `clew.examine` run."""
    kind = as_experiment(given, name, question)
    if kind.name in {known.name for known in EXPERIMENTS}:
        raise CannotRegister(f"{kind.name} is one of Clew's own experiments; choose another name")
    EXPERIMENTS_OF_OTHERS.add(kind.name, kind)


def all_experiments() -> list[type[Experiment]]:
    """Clew's own, registered ones, and those of installed packages."""
    return [*EXPERIMENTS, *EXPERIMENTS_OF_OTHERS.all().values()]
