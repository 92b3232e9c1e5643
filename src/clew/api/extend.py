"""`clew.extend`: every place where Clew can be extended, one function each.

    clew.extend.check        a test of what was recorded              clew.checks
    clew.extend.signal       a number computed on sampled steps       clew.signals
    clew.extend.experiment   something `clew check` tries             clew.experiments
    clew.extend.framework    an adapter for a training framework      clew.frameworks
    clew.extend.tracker      a receiver of everything recorded        clew.trackers
    clew.extend.renderer     a format for the verdict                 clew.renderers

Call them with the extension, or use them as decorators. A package lists its extensions under the entry
point group on the right, and nothing needs to be called. An extension that fails is switched off and
reported in one line; training continues. Examples: docs/extend.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from clew.labs.snapshot.time_limit import CannotJudge as CannotJudge

if TYPE_CHECKING:
    from clew.checks.needs import AnyOf, NamedFact, NamedSignal, Need, One

Given = TypeVar("Given")


def check(
    given: Any = None, *, name: str | None = None, needs: Sequence[Need] = (), severity: str = "warning"
) -> Any:
    """A check: a function that takes a run and yields findings or sentences, or a subclass of `Check`.

    `needs` lists what must be recorded for it to judge: `recorded_signal(name)`, `recorded_fact(kind)`,
    `experiment_result(name)`, or `any_of(…)` of them. It runs during training and at the end; its
    findings at the end are recorded. Entry point group: `clew.checks`.
    """
    from clew.checks.custom_checks import register

    if given is None:
        return register(name=name, needs=needs, severity=severity)
    return register(given)


def recorded_signal(name: str) -> NamedSignal:
    """For the `needs` of a check: a signal of docs/signals.md, or one that the program logs."""
    from clew.checks import needs

    return needs.recorded_signal(name)


def recorded_fact(kind: str) -> NamedFact:
    """For the `needs` of a check: a kind of fact of docs/signals.md, such as `"optimizer"`."""
    from clew.checks import needs

    return needs.recorded_fact(kind)


def experiment_result(name: str) -> NamedFact:
    """For the `needs` of a check: the result of the experiment of this name."""
    from clew.checks import needs

    return needs.experiment_result(name)


def any_of(*options: One) -> AnyOf:
    """For the `needs` of a check: one of several is enough."""
    from clew.checks import needs

    return needs.any_of(*options)


def signal(name: str, *, unit: str = "", meaning: str = "") -> Callable[[Given], Given]:
    """A signal: a function that is called on sampled steps, just before the parameters are updated.

    It gets a `SampledStep` (`step`, `models`, `optimizers`) and returns a number, or a mapping from
    module paths to numbers. It must not change anything: it runs under `no_grad`, and the random
    generators are restored afterwards. Entry point group: `clew.signals`; the name of the entry point is
    the name of the signal.
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
    Raise `CannotJudge` if it makes no sense for a program. Entry point group: `clew.experiments`.
    """
    from clew.labs.experiments.experiment_list import register_experiment

    def add(kind: Any) -> Any:
        register_experiment(kind, name, question)
        return kind

    return add if given is None else add(given)


def framework(given: Given) -> Given:
    """An adapter for a training framework: an object or a class with `name`, `module` and `attach(run)`.

    `attach` is called when the program has imported `module`. Pass on what the framework knows with
    `run.introduce(model)`, `run.log(metrics)` and `run.config(values)`, and wrap every hook that you pass
    to the framework in `run.guarded`. `detach()` removes the hooks. Entry point group: `clew.frameworks`.
    """
    from clew.session.activities.framework_adapters import register_framework

    register_framework(given)
    return given


def tracker(given: Any = None, *, name: str | None = None) -> Any:
    """A tracker: called with the run, returns an object with `write(batch)` and perhaps `close(verdict)`.

    `batch` has `facts`, `events` and `series()`. The object is used on its own thread. Return None to
    skip the run. A registered tracker is always used, one from a package only if the user names it:
    `clew run --track NAME`. Entry point group: `clew.trackers`.
    """
    from clew.session.activities.tracker_feed import register_tracker

    def add(made: Any) -> Any:
        register_tracker(made, name)
        return made

    return add if given is None else add(given)


def renderer(given: Any = None, *, name: str | None = None) -> Any:
    """A format for the verdict: a function that takes a `Verdict` and a `RunSummary` and returns text.

    `clew why --format NAME` and `clew.open_run(path).render(NAME)` use it. Entry point group:
    `clew.renderers`.
    """
    from clew.render.renderers import register_renderer

    def add(function: Any) -> Any:
        register_renderer(function, name)
        return function

    return add if given is None else add(given)
