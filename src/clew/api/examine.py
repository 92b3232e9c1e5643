"""`clew.examine`: the experiments of `clew check` on objects that you pass.

    report = clew.examine(model, loss_fn, loader, optimizer)
    print(report)              # the table, and what failed
    assert report.ok

The experiments run on the given objects and leave them bit-identical.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn, optim

from clew.checks import catalog
from clew.checks.needs import fact_kinds
from clew.checks.run_view import RunView
from clew.checks.runner import judge
from clew.hooks.entry.user_line import user_line
from clew.labs.experiments.fix_experiments import PROOFS, prove_fixes
from clew.labs.experiments.run import (
    TIME_LIMIT,
    Progress,
    UnknownExperiment,
    chosen,
    run_experiments,
)
from clew.labs.snapshot.module_state import keep_loader_generators
from clew.labs.snapshot.users_step.model_calls import as_in_training
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.errors import CannotExamine
from clew.records.facts.experiment_facts import PREFIX, UNJUDGED, ExperimentFact
from clew.records.facts.fact import FactsInMemory
from clew.records.verdict import Verdict
from clew.render.run_summary import RunSummary
from clew.render.screen import drawn_text
from clew.render.verdict import preflight_results as states
from clew.render.verdict.preflight_results import ExperimentAnswer, Preflight
from clew.session.active_session import active
from clew.session.project_settings import threshold_facts

if TYPE_CHECKING:
    from clew.labs.experiments.base import Experiment
    from clew.labs.snapshot.subject import Subject

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
    notes, began = FactsInMemory([*threshold_facts()]), perf_counter()
    with unseen(), keep_loader_generators(batch_or_loader):
        subject = subject_of(model, loss_fn, batch_or_loader, optimizer, step=step)
        subject.line = user_line()
        with as_in_training(model):
            _lend_optimizer(subject)
            run_experiments(
                subject,
                _asked(subject, experiments, notes),
                notes,
                time_limit=time_limit * (1 - PROOFS),
                progress=progress,
            )
            left = time_limit - (perf_counter() - began)
            if optimizer is not None and left > 0:
                prove_fixes(_judged(notes)[1].root_causes, subject, notes, 0, left)
    view, verdict = _judged(notes)
    return ExamineReport(Preflight.read(view, verdict, type(model).__name__))


def _chosen(only: Sequence[str], skip: Sequence[str]) -> list[Experiment]:
    wanted, left = ([names] if isinstance(names, str) else list(names) for names in (only, skip))
    try:
        return chosen(wanted, left)
    except UnknownExperiment as error:
        raise CannotExamine(str(error)) from None


def _asked(subject: Subject, experiments: Sequence[Experiment], notes: FactsInMemory) -> list[Experiment]:
    """The experiments that are possible with these objects; the others are recorded as not judged."""
    if NO_OPTIMIZER not in subject.reasons.values():
        return list(experiments)
    for experiment in experiments:
        if experiment.needs_optimizer:
            ExperimentFact(
                UNJUDGED, NO_OPTIMIZER, GIVE_OPTIMIZER, question=experiment.question, name=experiment.name
            ).write(notes, 0)
    return [e for e in experiments if not e.needs_optimizer]


def unseen() -> contextlib.AbstractContextManager[None]:
    """Hide the experiments from a session in this process: they are not its training."""
    session = active()
    watcher = session.watcher if session is not None else None
    return contextlib.nullcontext() if watcher is None else watcher.machine.unwatched()


def _lend_optimizer(subject: Subject) -> None:
    """Use Adam where no optimizer was given: it learns nearly anything."""
    if not subject.optimizers:
        subject.optimizers = [optim.Adam(subject.parameters(), lr=STAND_IN)]


def _judged(notes: FactsInMemory) -> tuple[RunView, Verdict]:
    """The verdict of the checks that read the experiments that ran."""
    view = RunView(notes)
    asked = set(view.fact_kinds(PREFIX))
    checks = [check for check in catalog.everything() if asked & fact_kinds(check.needs)]
    return view, judge(view, checks=checks)


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
        """Those that were not judged; `report[name].reason` says why."""
        return self.preflight.names(states.UNJUDGED)

    @property
    def verdict(self) -> Verdict:
        """The findings with their evidence, root causes first."""
        return self.preflight.verdict

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return self.preflight.ok

    def __getitem__(self, name: str) -> ExperimentAnswer:
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
        """Draw the report on a stream, with colours and images if that is a terminal."""
        from clew.render.verdict.preflight_terminal import render_preflight

        render_preflight(self.preflight, self._summary(), stream=stream, width=width, full=full)

    def explain(self, name: str) -> str:
        """The report on one failed experiment; empty for one that did not fail."""
        from clew.render.verdict.preflight_terminal import render_answer

        if name not in self.failed:
            return ""
        return drawn_text(render_answer, self[name], self._summary(), width=100)

    def __str__(self) -> str:
        return drawn_text(self.render)

    def _repr_html_(self) -> str:
        from clew.render.verdict.preflight_html import fragment

        return fragment(self.preflight, self._summary())

    def to_html(self) -> str:
        """The report as an HTML page, with plots and images."""
        from clew.render.verdict.preflight_html import page

        return page(self.preflight, self._summary())

    def to_json(self) -> dict[str, Any]:
        """The same as `clew check --json` writes."""
        from clew.render.verdict.preflight_results import preflight_json

        return preflight_json(self.preflight, self._summary())

    def to_junit(self) -> str:
        """JUnit XML: each experiment is a test case."""
        from clew.render.verdict.preflight_results import junit

        return junit(self.preflight)
