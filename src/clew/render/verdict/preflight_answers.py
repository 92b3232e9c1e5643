"""The results of a pre-flight, sorted: each experiment passed, failed or could not be judged.

Read from what is recorded (the facts `experiment.*`) and from the verdict; nothing is judged here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.records.finding import Finding, Severity
from clew.records.verdict import Verdict
from clew.render.plot_line import PlotLine

if TYPE_CHECKING:
    from clew.checks.run_view import RunView

PASSED, FAILED, UNJUDGED = "passed", "failed", "unjudged"
FACT = "experiment."


@dataclass(frozen=True)
class ExperimentAnswer:
    """One experiment: the question, and what came of it."""

    name: str
    question: str
    state: str  # passed, failed or unjudged
    seconds: float
    reason: str = ""  # why it could not be judged
    hint: str = ""  # the line of code that would change that
    finding: Finding | None = None  # of the check of the same name; advice does not fail it
    plots: tuple[PlotLine, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)  # what was measured

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "question": self.question,
            "state": self.state,
            "seconds": round(self.seconds, 3),
            "reason": self.reason,
            "hint": self.hint,
            "data": dict(self.data),
            "plots": [plot.to_json() for plot in self.plots],
        }


@dataclass(frozen=True)
class Preflight:
    """All answers in the order in which the questions were asked, and the verdict they led to."""

    what: str  # the script, or the class of the model
    answers: tuple[ExperimentAnswer, ...]
    verdict: Verdict

    @classmethod
    def read(cls, run: RunView, verdict: Verdict, what: str) -> Preflight:
        """From the facts of a run, live or recorded."""
        found = {finding.check: finding for finding in verdict.findings}
        silent = dict.fromkeys(_experiments(run), "no check has evaluated it")
        silent |= {entry.check: entry.reason for entry in verdict.not_judged}
        silent |= {entry.check: f"found, but ignored: {entry.why}" for entry in verdict.ignored}
        for name in (*verdict.ruled_out, *found):
            silent.pop(name, None)
        answers = tuple(
            _answer(name, fact, found.get(name), silent.get(name)) for name, fact in _experiments(run).items()
        )
        return cls(what, answers, verdict)

    def names(self, state: str) -> tuple[str, ...]:
        """Of the experiments that ended so."""
        return tuple(answer.name for answer in self.answers if answer.state == state)

    @property
    def seconds(self) -> float:
        return math.fsum(answer.seconds for answer in self.answers)

    @property
    def ok(self) -> bool:
        """Nothing failed; what could not be judged does not count against it."""
        return not any(finding.severity is not Severity.ADVICE for finding in self.verdict.findings)

    @property
    def others(self) -> tuple[Finding, ...]:
        """What ordinary checks found in the steps that were made."""
        asked = {answer.name for answer in self.answers}
        faults = [f for f in self.verdict.findings if f.severity is not Severity.ADVICE]
        return tuple(f for f in faults if f.check not in asked)

    @property
    def plots(self) -> dict[str, tuple[PlotLine, ...]]:
        """By the name of the experiment."""
        return {answer.name: answer.plots for answer in self.answers}


def _experiments(run: RunView) -> dict[str, Mapping[str, Any]]:
    """The newest fact of each experiment, in the order of their first ones."""
    return {kind.removeprefix(FACT): run.facts(kind)[-1].data for kind in run.fact_kinds(FACT)}


def _answer(
    name: str, fact: Mapping[str, Any], finding: Finding | None, silence: str | None
) -> ExperimentAnswer:
    reason, hint = str(fact.get("reason") or ""), str(fact.get("hint") or "")
    done = fact.get("status") == "done"
    if finding is not None and finding.severity is not Severity.ADVICE:
        state = FAILED
    elif not done or silence is not None:
        state = UNJUDGED
        reason = reason or silence or "the experiment gave no result"
    else:
        state = PASSED
    drawn = fact.get("plots")
    plots = [PlotLine.read(p) for p in (drawn if isinstance(drawn, list) else ()) if isinstance(p, Mapping)]
    return ExperimentAnswer(
        name,
        str(fact.get("question") or name),
        state,
        _seconds(fact.get("seconds")),
        reason if state == UNJUDGED else "",
        hint if state == UNJUDGED else "",
        finding,
        tuple(plot for plot in plots if plot.x),
        data if isinstance(data := fact.get("data"), Mapping) else {},
    )


def _seconds(given: Any) -> float:
    usable = isinstance(given, (int, float)) and math.isfinite(given)
    return max(float(given), 0.0) if usable else 0.0
