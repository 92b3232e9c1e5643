"""Runs the experiments on a subject one after the other, within one time limit, and records the results.

A failure in an experiment, including one of the user's code, is a result too: "not judged", with
the reason in one line.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.labs.experiments.base import DONE, UNJUDGED, Experiment, Result
from clew.labs.experiments.user_experiments import all_experiments
from clew.labs.snapshot.failure import failure
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime
from clew.records.codec import json_float
from clew.records.facts.experiment_facts import PREFIX

TIME_LIMIT = 120.0  # seconds in all
LARGEST_SHARE = 0.25  # share of the limit that one experiment may take
LEAST = 0.2  # seconds below which none is started
NO_TIME = "no time left"
MORE_TIME = "give it more: --time-limit {seconds:.0f}"

Record = Callable[[str, dict[str, Any]], None]  # a fact's kind and its content
Progress = Callable[[int, int, str, float], None]  # how many are done, of how many, which runs, how far it is


class UnknownExperiment(Exception):  # noqa: N818 - reads as what it is
    """A name that no experiment has, with the closest one that exists."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose from: {', '.join(names)}"
        super().__init__(f"there is no experiment named {name!r}; {hint}")


@dataclass(frozen=True)
class ExperimentOutcome:
    """One experiment's result, or why it has none."""

    name: str
    question: str
    status: str  # DONE or UNJUDGED
    reason: str = ""
    hint: str = ""
    seconds: float = 0.0
    result: Result = field(default_factory=lambda: Result({}))

    def to_json(self) -> dict[str, Any]:
        """The fact `experiment.<name>`: see docs/signals.md."""
        return {
            "status": self.status,
            "reason": self.reason,
            "hint": self.hint,
            "seconds": round(self.seconds, 3),
            "question": self.question,
            "data": plain(self.result.data),
            "plots": [plot.to_json() for plot in self.result.plots],
            "exhibits": [plain(exhibit) for exhibit in self.result.exhibits],
        }


def chosen(
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    experiments: Sequence[type[Experiment]] | None = None,
) -> list[Experiment]:
    """The experiments asked for, in their order; raises UnknownExperiment."""
    known = {kind.name: kind for kind in (all_experiments() if experiments is None else experiments)}
    for name in (*only, *skip):
        if name not in known:
            raise UnknownExperiment(name, known)
    wanted = [k for k in known.values() if (not only or k.name in only) and k.name not in skip]
    return [kind() for kind in sorted(wanted, key=lambda k: k.rank)]


def run_experiments(
    subject: Subject,
    experiments: Sequence[Experiment],
    record: Record,
    *,
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
    now: Callable[[], float] = time.monotonic,
) -> list[ExperimentOutcome]:
    """Run all of them, one after the other; each result is recorded as soon as it exists."""
    began = now()
    outcomes: list[ExperimentOutcome] = []
    for number, experiment in enumerate(experiments):
        left = time_limit - (now() - began)
        told = _told(progress, number, len(experiments), experiment.name)
        clock = Clock(min(left, time_limit * LARGEST_SHARE), now, told)
        outcomes.append(_tried(experiment, subject, clock, time_limit))
        record(f"{PREFIX}{experiment.name}", outcomes[-1].to_json())
    if progress is not None:
        progress(len(experiments), len(experiments), "", 0.0)
    return outcomes


def _told(progress: Progress | None, number: int, count: int, name: str) -> Callable[[float], None] | None:
    return None if progress is None else lambda done: progress(number, count, name, done)


def _tried(experiment: Experiment, subject: Subject, clock: Clock, time_limit: float) -> ExperimentOutcome:
    def outcome(
        status: str, reason: str = "", hint: str = "", result: Result | None = None
    ) -> ExperimentOutcome:
        seconds = clock.now() - clock.began
        found = result if result is not None else Result({})
        return ExperimentOutcome(experiment.name, experiment.question, status, reason, hint, seconds, found)

    clock.start()
    more = MORE_TIME.format(seconds=2 * time_limit)
    if clock.limit < LEAST:
        return outcome(UNJUDGED, NO_TIME, more)
    try:
        if clock.on_progress is not None:
            clock.on_progress(0.0)
        return outcome(DONE, result=experiment.run(subject, clock))
    except CannotJudge as error:
        return outcome(UNJUDGED, error.reason, error.hint)
    except OutOfTime:
        return outcome(UNJUDGED, f"not finished after {clock.limit:.0f} s", more)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may fail in any way
        return outcome(UNJUDGED, failure(error))


def plain(value: Any) -> Any:
    """The same value in JSON's own types: numpy and torch numbers become Python numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return json_float(value)
    convert = getattr(value, "tolist", None)  # numpy's and torch's, scalars and arrays alike
    return plain(convert()) if callable(convert) else str(value)
