"""`clew.examine`: the experiments of `clew check` on objects that you pass.

    report = clew.examine(model, loss_fn, loader, optimizer)
    print(report)              # the table, and what failed
    assert report.ok

The experiments run on the given objects and leave them bit-identical.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn, optim

from clew.checks import catalog
from clew.checks.needs import fact_kinds
from clew.checks.run_view import RunView
from clew.checks.runner import judge
from clew.hooks.entry.user_line import user_line
from clew.hooks.steps.pause import unwatched
from clew.labs.experiments.base import UNJUDGED
from clew.labs.experiments.fix_trials import try_fixes
from clew.labs.experiments.run import (
    TIME_LIMIT,
    Outcome,
    Progress,
    UnknownExperiment,
    chosen,
    run_experiments,
)
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.errors import CannotExamine
from clew.records.facts.experiment_facts import PREFIX
from clew.records.facts.run_facts import ThresholdsFact
from clew.records.finding import Severity
from clew.records.verdict import Verdict
from clew.render.run_summary import RunSummary
from clew.render.verdict import preflight_answers as states
from clew.render.verdict.preflight_answers import Answer, Preflight
from clew.session.active_session import active
from clew.session.activities.first_steps import keep_loader_generators
from clew.session.activities.preflight_experiments import PROOFS
from clew.session.project_settings import project_thresholds

if TYPE_CHECKING:
    import numpy.typing as npt

    from clew.hooks.entry.sink import Sink
    from clew.labs.experiments.base import Experiment
    from clew.labs.snapshot.subject import Subject
    from clew.records.site import Site

# Questions about the optimizer itself; the others can be asked with any that learns.
OF_THE_OPTIMIZER = {
    "hyperparameters-off",
    "learning-rate-too-high",
    "learning-rate-too-low",
    "optimizer-unfit",
    "over-regularised",
}
STAND_IN = 1e-3  # learning rate of the Adam that is used where no optimizer is given
NO_OPTIMIZER = "no optimizer was given"
GIVE_OPTIMIZER = "clew.examine(model, loss_fn, loader, optimizer)"


def examine(
    model: nn.Module,
    loss_fn: Callable[..., Tensor] | None = None,
    batch_or_loader: Any = None,
    optimizer: optim.Optimizer | None = None,
    *,
    step: Callable[[Any], Tensor] | None = None,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    time_limit: float = TIME_LIMIT,
    progress: Progress | None = None,
) -> ExamineReport:
    """Run experiments on a snapshot of the network; raises CannotExamine.

    A batch is `(input, target)`, a dictionary with a target among its keys, or one tensor for an
    autoencoder. Without `loss_fn` the model's own loss is used, as transformers models return it. For
    everything else pass `step(batch) -> loss`, your own code from batch to loss.
    """
    experiments = _chosen(only, skip)
    notes, began = Notes.of_project(), perf_counter()
    with unseen(), keep_loader_generators(batch_or_loader):
        subject = subject_of(model, loss_fn, batch_or_loader, optimizer, step=step)
        subject.line = user_line()
        with as_in_training(model):
            _lend_optimizer(subject)
            run_experiments(
                subject,
                _asked(subject, experiments, notes),
                lambda kind, data: notes.fact(kind, 0, data),
                time_limit=time_limit * (1 - PROOFS),
                progress=progress,
            )
            if optimizer is not None:
                _try_fixes(subject, notes, time_limit - (perf_counter() - began))
    view, verdict = _judged(notes)
    return ExamineReport(Preflight.read(view, verdict, type(model).__name__))


def _chosen(only: Sequence[str], skip: Sequence[str]) -> list[Experiment]:
    wanted, left = ([names] if isinstance(names, str) else list(names) for names in (only, skip))
    try:
        return chosen(wanted, left)
    except UnknownExperiment as error:
        raise CannotExamine(str(error)) from None


def _asked(subject: Subject, experiments: Sequence[Experiment], notes: Notes) -> list[Experiment]:
    """Those that make sense with what was given; the others are noted as open."""
    if NO_OPTIMIZER not in subject.reasons.values():
        return list(experiments)
    for experiment in experiments:
        if experiment.name in OF_THE_OPTIMIZER:
            open_one = Outcome(experiment.name, experiment.question, UNJUDGED, NO_OPTIMIZER, GIVE_OPTIMIZER)
            notes.fact(f"{PREFIX}{experiment.name}", 0, open_one.to_json())
    return [e for e in experiments if e.name not in OF_THE_OPTIMIZER]


def unseen() -> contextlib.AbstractContextManager[None]:
    """A session that watches this process does not take the experiments for training."""
    session = active()
    watcher = session.watcher if session is not None else None
    return contextlib.nullcontext() if watcher is None else unwatched(watcher)


@contextlib.contextmanager
def as_in_training(model: nn.Module) -> Iterator[None]:
    """A model in evaluation mode is examined in training mode."""
    if any(module.training for module in model.modules()):
        yield
        return
    model.train()
    try:
        yield
    finally:
        model.eval()  # all of it was


def _lend_optimizer(subject: Subject) -> None:
    """The optimizer to use where none was given: one that learns nearly anything."""
    if not subject.optimizers:
        subject.optimizers = [optim.Adam(subject.parameters(), lr=STAND_IN)]


def _judged(notes: Notes) -> tuple[RunView, Verdict]:
    """What the checks say that read the experiments which were made."""
    view = RunView(notes)
    asked = set(view.fact_kinds(PREFIX))
    checks = [check for check in catalog.everything() if asked & fact_kinds(check.needs)]
    return view, judge(view, checks=checks)


def _try_fixes(subject: Subject, notes: Notes, seconds: float) -> None:
    """The root causes first, as at the end of `clew check`."""
    found = _judged(notes)[1].findings
    names = [f.check for f in found if not f.because and f.severity is not Severity.ADVICE]
    if names and seconds > 0:
        try_fixes(names, subject, cast("Sink", notes), 0, seconds)  # which writes facts only


@dataclass(frozen=True)
class Note:
    kind: str
    step: int
    data: dict[str, Any]


@dataclass
class Notes:
    """A run in memory of which only facts are known: what the checks read."""

    facts: list[Note] = field(default_factory=list)
    events: tuple[Note, ...] = ()
    last_step: int = -1
    end: dict[str, Any] | None = None

    @classmethod
    def of_project(cls) -> Notes:
        """With the thresholds that the project of the working folder sets."""
        notes = cls()
        for setting in project_thresholds():
            ThresholdsFact(**setting.to_json()).write(notes, 0)
        return notes

    def fact(self, kind: str, step: int, data: dict[str, Any]) -> None:
        self.facts.append(Note(kind, step, data))

    def signal_names(self) -> list[str]:
        return []

    def series(self, name: str) -> Iterator[tuple[Site, npt.NDArray[Any], npt.NDArray[Any]]]:
        return iter(())


@dataclass(frozen=True)
class ExamineReport:
    """The result of the experiments; printed, it is the table of `clew check`."""

    preflight: Preflight

    @property
    def passed(self) -> tuple[str, ...]:
        return self.preflight.names(states.PASSED)

    @property
    def failed(self) -> tuple[str, ...]:
        return self.preflight.names(states.FAILED)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Those without a result; `report[name].reason` says why."""
        return self.preflight.names(states.UNJUDGED)

    @property
    def verdict(self) -> Verdict:
        """The findings with their evidence, root causes first."""
        return self.preflight.verdict

    @property
    def ok(self) -> bool:
        """Nothing failed."""
        return self.preflight.ok

    def __getitem__(self, name: str) -> Answer:
        for answer in self.preflight.answers:
            if answer.name == name:
                return answer
        raise KeyError(name)

    def _summary(self) -> RunSummary:
        return RunSummary(
            id="examine",
            path="",
            script=self.preflight.what,
            state="finished",
            steps=0,
            checks=self.verdict.asked,
        )

    def render(self, *, stream: Any = None, width: int | None = None, full: bool = False) -> None:
        """Draw it on a stream, with colours and pictures if that is a terminal."""
        from clew.render.verdict.preflight_terminal import render_preflight

        render_preflight(self.preflight, self._summary(), stream=stream, width=width, full=full)

    def explain(self, name: str) -> str:
        """The report on one failed experiment; empty for one that did not fail."""
        from clew.render.verdict.preflight_terminal import render_answer

        paper = io.StringIO()
        if name in self.failed:
            render_answer(self[name], self._summary(), stream=paper, width=100)
        return paper.getvalue().rstrip("\n")

    def __str__(self) -> str:
        paper = io.StringIO()
        self.render(stream=paper)
        return paper.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        from clew.render.verdict.preflight_html import fragment

        return fragment(self.preflight, self._summary())

    def to_html(self) -> str:
        """A whole HTML page, with plots and images."""
        from clew.render.verdict.preflight_html import page

        return page(self.preflight, self._summary())

    def to_json(self) -> dict[str, Any]:
        """As `clew check --json`."""
        from clew.render.verdict.preflight_json import preflight_json

        return preflight_json(self.preflight, self._summary())

    def to_junit(self) -> str:
        """XML in which each experiment is a test case."""
        from clew.render.verdict.preflight_json import junit

        return junit(self.preflight)
