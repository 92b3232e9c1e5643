"""`clew.extend`: every place where Clew can be extended, one function each.

    clew.extend.check        a question asked of what was recorded    clew.checks
    clew.extend.signal       a number computed on sampled steps       clew.signals
    clew.extend.experiment   something `clew check` tries             clew.experiments
    clew.extend.framework    an adapter of a training framework       clew.frameworks
    clew.extend.tracker      whoever gets all that is recorded        clew.trackers
    clew.extend.renderer     a format of the verdict                  clew.renderers

Each is called with the extension or used as a decorator. A package offers its extensions under the entry
point group on the right, without calling anything. An extension that fails is switched off and reported
in one line; the training goes on. Examples: docs/extend.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Given = TypeVar("Given")


def check(
    given: Any = None, *, name: str | None = None, needs: Sequence[str] = (), severity: str = "warning"
) -> Any:
    """A check: a function that takes a run and yields findings or sentences, or a subclass of `Check`.

    `needs` names the signals and facts without which it can't judge. It is asked while the run goes on
    and when it is over; what it said at the end is recorded. Entry point group: `clew.checks`.
    """
    from clew.checks.custom_checks import register

    if given is None:
        return register(name=name, needs=needs, severity=severity)
    return register(given)


def signal(name: str, *, unit: str = "", meaning: str = "") -> Callable[[Given], Given]:
    """A signal: a function that is called on sampled steps, just before the parameters are updated.

    It gets a `SampledStep` (`step`, `models`, `optimizers`) and returns a number, or a mapping from
    paths of modules to numbers. It must not change anything; no gradients are recorded while it runs, and
    random generators are put back after it. Entry point group: `clew.signals`, the entry point's name is
    the signal's.
    """
    from clew.session.activities.user_signals import SIGNALS, as_signal

    def add(given: Given) -> Given:
        SIGNALS.add(name, as_signal(given, name, unit, meaning))
        return given

    return add


def experiment(given: Any = None, *, name: str | None = None, question: str = "") -> Any:
    """An experiment of `clew check` and `clew.examine`: a function, or a subclass of `Experiment`.

    The function gets the `Subject` (model, step, batches, optimizers) and a `Clock`, and returns numbers
    in a dict. They are recorded as the fact `experiment.NAME`; a check of the same name judges them.
    Raise `CannotJudge` where the question makes no sense. Entry point group: `clew.experiments`.
    """
    from clew.labs.experiments.user_experiments import register_experiment

    def add(kind: Any) -> Any:
        register_experiment(kind, name, question)
        return kind

    return add if given is None else add(given)


def framework(given: Given) -> Given:
    """An adapter of a training framework: an object or a class with `name`, `module` and `attach(run)`.

    `attach` is called when the program has imported `module`. `run` passes on what the framework knows:
    `run.introduce(model)`, `run.log(metrics)`, `run.config(values)`; hooks that are handed to the
    framework go through `run.guarded`. `detach()` takes them out again. Entry point group:
    `clew.frameworks`.
    """
    from clew.session.activities.framework_adapters import register_framework

    register_framework(given)
    return given


def tracker(given: Any = None, *, name: str | None = None) -> Any:
    """A tracker: called with the run, gives an object with `write(batch)` and perhaps `close(verdict)`.

    `batch` has `facts`, `events` and `series()`. It is called on a thread of its own. None instead of an
    object means that this run is not wanted. A registered tracker is used at once; one that a package
    offers is used when asked for by name: `clew run --track NAME`. Entry point group: `clew.trackers`.
    """
    from clew.session.activities.tracker_feed import register_tracker

    def add(made: Any) -> Any:
        register_tracker(made, name)
        return made

    return add if given is None else add(given)


def renderer(given: Any = None, *, name: str | None = None) -> Any:
    """A format of the verdict: a function of a `Verdict` and a `RunSummary` that gives text.

    `clew why --format NAME` and `clew.open_run(path).render(NAME)` use it. Entry point group:
    `clew.renderers`.
    """
    from clew.render.renderers import register_renderer

    def add(function: Any) -> Any:
        register_renderer(function, name)
        return function

    return add if given is None else add(given)
