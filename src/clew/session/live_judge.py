"""Runs the checks during a run, on the writer's thread and within a share of its time."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter, sleep, thread_time
from typing import TYPE_CHECKING

from clew.records.facts.fact import facts_of
from clew.records.facts.nan_facts import ExplainedFact, NonFiniteFact
from clew.records.facts.run_facts import AnnouncedFact
from clew.records.finding import Finding, Severity
from clew.records.verdict import Verdict
from clew.render.stderr_messages import say
from clew.session.run_options import FAILED_ON

if TYPE_CHECKING:
    from clew.session.session import Session
    from clew.store.read.run_data import RunData
    from clew.store.read.run_reader import RunReader

FIRST = 8  # steps: checks that need a window have nothing to say before
SPREAD = 1.5  # an early verdict comes at this multiple of the step before: 13 of them up to step 1,000
YOUNG = 2_000  # steps with early verdicts; after that, those for a share of the time come more often anyway
PAUSE = 0.5  # seconds, at least, between any verdict and one for a share of the time
# Users who ask for the run to be ended at a finding want it soon, even if that costs more.
EAGER_CREDIT, EAGER_SHARE = 2.0, 0.02

KEPT_ROWS = 256  # of each layer's statistics: the longest window that a check needs
OTHERS_PATIENCE = 3.0  # seconds for the other processes of a run to end, if there is a NaN to explain
PATIENCE = 1.0  # seconds that the training waits for a verdict that --stop-on asked for; then never again


class RunStopped(SystemExit):
    """Ends the script as `--stop-on` or `--steps` asks."""


@dataclass
class Pace:
    """When the checks run. Costs are in CPU seconds, times are of the clock, in seconds."""

    credit: float = 0.4  # for the early verdicts; one on a small network takes a hundredth of a second
    share: float = 0.0015  # of one processor for later verdicts: one every ten seconds on a small network
    early: int = FIRST  # the step at which the next early verdict is due
    earned: float = 0.0  # the time from which the next later verdict is within its share

    def is_early(self, step: int) -> bool:
        """Whether a verdict is due at this step, regardless of the time."""
        return self.early <= step <= YOUNG and self.credit > 0.0

    def is_due(self, step: int, now: float) -> bool:
        """Whether a verdict is due at this step and time."""
        return self.is_early(step) or (step >= FIRST and now >= self.earned)

    def judged(self, step: int, now: float, cost: float) -> None:
        """The checks have run at this step."""
        if self.is_early(step):
            self.credit -= cost
        self.earned = now + max(PAUSE, cost / self.share)
        self.early = max(step + FIRST // 2, int(step * SPREAD))


class LiveJudge:
    """Checks a run in progress, reports new errors, and stops the script if asked to."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._data: RunData | None = None
        self._early: list[bytes] = []
        self._making = threading.Lock()
        self._judged = -1
        self._eager = session.options.stop_on is not None
        self._pace = Pace(EAGER_CREDIT, EAGER_SHARE) if self._eager else Pace()
        self._ready = False  # all checks are imported
        self._announced: set[str] = set()
        self._stop: Finding | None = None

    @property
    def data(self) -> RunData:
        """What was recorded so far, or only the last part where that would be too much."""
        if self._data is None:
            from clew.store.read.run_data import RunData

            with self._making:  # the log's thread feeds it, the training's may be the first to ask
                if self._data is None:
                    data = RunData(keep_rows=KEPT_ROWS)
                    for payload in self._early:
                        data.feed(payload)
                    self._data, self._early = data, []
        return self._data

    def feed(self, payload: bytes) -> None:
        """Take a record as it was written.

        Before torch is imported, nothing is decoded: that would import numpy.
        """
        with self._making:
            early = self._data is None and "torch" not in sys.modules
            if early:
                self._early.append(payload)
        if not early:
            self.data.feed(payload)

    def judge_if_due(self) -> None:
        """Called after every flush; most calls return at once."""
        if self._data is None:
            return
        if not self._ready:
            self._prepare()
        steps = self.data.last_step + 1
        if steps <= self._judged or not self._pace.is_due(steps, perf_counter()) or self._explaining():
            return
        began = thread_time()
        self._judged = steps
        for finding in self.verdict().findings:
            self._consider(finding)
        for activity in self._session.activities:
            self._session.guarded(activity.name, activity.judged)
        self._pace.judged(steps, perf_counter(), thread_time() - began)

    def _explaining(self) -> bool:
        """Whether a step is being replayed to find what produced a NaN: its cause is not known yet."""
        facts = self.data.facts
        begun = sum(alarm.explained for alarm in facts_of(NonFiniteFact, facts))
        return begun > len(facts_of(ExplainedFact, facts))

    def _prepare(self) -> None:
        """Import the checks before there are steps to judge: the longest part of a first verdict."""
        self._ready = True
        from clew.checks import catalog, runner  # noqa: F401 - for the verdicts to come

        catalog.everything()

    def _consider(self, finding: Finding) -> None:
        asked = self._session.options.stop_on
        if asked is not None and finding.severity.rank <= Severity(asked).rank and self._stop is None:
            self._stop = finding
        if finding.severity is Severity.ERROR and finding.check not in self._announced:
            self._announced.add(finding.check)
            self._note(finding)
            options = self._session.options
            if self._session.speaks and options.check is None and options.data is None:
                from clew.render.verdict.verdict_terminal import live_line

                say(live_line(finding, sys.stderr))

    def _note(self, finding: Finding) -> None:
        """Record what was reported, so that the final verdict mentions it too."""
        from clew.checks.custom_checks import findings_data

        announced = AnnouncedFact(finding.check, tuple(findings_data([finding])))
        announced.write(self._session.writer, self.data.last_step)

    def stop_if_asked(self, step: int) -> None:
        """On the training thread, between two steps: end the script if a finding says so."""
        if self._pace.is_early(step) and step > self._judged:
            self._judge_soon()
        limit = self._session.options.steps
        if limit is not None and step >= limit:
            self._say(f"stopped after {step} steps (--steps)")
            raise RunStopped(0)
        if self._stop is not None:
            stop, self._stop = self._stop, None
            self._say(f"stopped at step {step}: {stop.check} (--stop-on)")
            raise RunStopped(FAILED_ON)

    def _judge_soon(self) -> None:
        """There are enough steps for a verdict: run the checks now, not at the next flush of the log."""
        if not self._eager:
            self._session.writer.nudge()
        elif not self.catch_up(PATIENCE):
            self._eager = False

    def catch_up(self, timeout: float) -> bool:
        """Wait until all that was recorded is judged; part of no step. False: it takes too long."""
        began, writer, watcher = perf_counter(), self._session.writer, self._session.watcher
        # The second flush begins when the checks that follow the first are done.
        done = writer.flush(timeout) and writer.flush(timeout)
        if watcher is not None:
            watcher.sampler.excuse(perf_counter() - began)
            watcher.clock.restart()
        return done

    def _say(self, line: str) -> None:
        if not self._session.options.quiet:
            self._session.say(line)

    def verdict(self) -> Verdict:
        """The verdict on what is known now."""
        from clew.checks.run_view import RunView
        from clew.checks.runner import judge

        return judge(RunView(self.data))

    @cached_property
    def final_verdict(self) -> Verdict:
        """The verdict on the finished run, read back from disk as `clew why` does."""
        if self._session.watcher is None:
            return Verdict()
        from clew.checks.run_view import RunView
        from clew.checks.runner import judge
        from clew.store.read.run_errors import RunError
        from clew.store.read.run_reader import open_run

        rank = self._session.rank
        try:
            run = open_run(self._session.path)
            data = run.ranks[rank]
        except (RunError, OSError, KeyError):
            return self.verdict()  # nothing could be written: what is in memory must do
        if data.last_step < self.data.last_step:
            return self.verdict()
        if facts_of(NonFiniteFact, data.facts):
            _await_others(run, rank)  # the cause may be in the log of another process
        return judge(RunView(data, run.ranks))


def _await_others(run: RunReader, rank: int) -> None:
    """Wait for the other processes of a run to finish writing, but not long: one may keep training."""
    until = perf_counter() + OTHERS_PATIENCE
    while perf_counter() < until and any(run.rank_state(n) == "running" for n in run.ranks if n != rank):
        sleep(0.1)
        run.refresh()
