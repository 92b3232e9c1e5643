"""Runs the experiments on a subject one after the other, within one time limit, and records the results.

A failure in an experiment, including one of the user's code, is a result too: "not judged", with
the reason in one line.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from clew.labs.experiments.base import Experiment
from clew.labs.experiments.experiment_list import all_experiments
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.time_limit import CannotJudge, Clock, OutOfTime, failure
from clew.records.facts.experiment_facts import UNJUDGED, ExperimentFact
from clew.records.facts.fact import FactSink

TIME_LIMIT = 120.0  # seconds in all
LARGEST_SHARE = 0.25  # share of the limit that one experiment may take
LEAST = 0.2  # seconds below which none is started
NO_TIME = "time limit reached"
MORE_TIME = "allow more: --time-limit {seconds:.0f}"

Progress = Callable[[int, int, str, float], None]  # how many are done, of how many; which one runs, how far


class UnknownExperiment(Exception):  # noqa: N818 - reads as what it is
    """A name that no experiment has, with the closest one that exists."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose from: {', '.join(names)}"
        super().__init__(f"there is no experiment named {name!r}; {hint}")


def chosen(
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    experiments: Sequence[type[Experiment]] | None = None,
) -> list[Experiment]:
    """The requested experiments, in order; raises UnknownExperiment."""
    known = {kind.name: kind for kind in (all_experiments() if experiments is None else experiments)}
    for name in (*only, *skip):
        if name not in known:
            raise UnknownExperiment(name, known)
    wanted = [k for k in known.values() if (not only or k.name in only) and k.name not in skip]
    return [kind() for kind in sorted(wanted, key=lambda k: k.rank)]


def run_experiments(
    subject: Subject,
    experiments: Sequence[Experiment],
    sink: FactSink,
    step: int = 0,
    *,
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Run all of them, one after the other; each result is written as soon as it exists."""
    began = now()
    for number, experiment in enumerate(experiments):
        left = time_limit - (now() - began)
        clock = Clock(min(left, time_limit * LARGEST_SHARE), now)
        if progress is not None:
            clock.on_progress = partial(progress, number, len(experiments), experiment.name)
        fact = _fact_of(experiment, subject, clock, time_limit)
        seconds = round(clock.now() - clock.began, 3)
        replace(fact, name=experiment.name, question=experiment.question, seconds=seconds).write(sink, step)
    if progress is not None:
        progress(len(experiments), len(experiments), "", 0.0)


def _fact_of(experiment: Experiment, subject: Subject, clock: Clock, time_limit: float) -> ExperimentFact:
    """What the experiment found, or why it has no result."""
    more = MORE_TIME.format(seconds=2 * time_limit)
    if clock.limit < LEAST:
        return ExperimentFact(UNJUDGED, NO_TIME, more)
    try:
        if clock.on_progress is not None:
            clock.on_progress(0.0)
        return experiment.run(subject, clock).fact()
    except CannotJudge as error:
        return ExperimentFact(UNJUDGED, error.reason, error.hint)
    except OutOfTime:
        return ExperimentFact(UNJUDGED, f"not finished after {clock.limit:.0f} s", more)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may fail in any way
        return ExperimentFact(UNJUDGED, failure(error))
