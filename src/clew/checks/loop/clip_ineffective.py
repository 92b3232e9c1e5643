"""LOOP008 clip-ineffective

## What it detects
Gradient clipping that does not work: after the optimizer's step or before the backward, when there is
nothing to clip; before a GradScaler has unscaled the gradients; on no gradients at all; or at a limit so
low that every step is cut to a small fraction.

## Why is this bad?
In the first cases a gradient that explodes reaches the weights unclipped (or scaled gradients are cut to
almost nothing). In the last, the size of each update is always the limit times the learning rate.

## How to fix
Between `backward()` and `step()`: `scaler.unscale_(optimizer)` if there is a scaler, then
`clip_grad_norm_(model.parameters(), max_norm)`, then the step. Choose a limit near the usual gradient
norm, so that it cuts only outliers.

## Known problems
Clipping every step by a moderate factor is common practice and is not reported. With Adam-like
optimizers a low limit hardly changes the update, so it is only advice.

## References
- Pascanu et al. 2013, On the difficulty of training recurrent neural networks.
- PyTorch docs, Automatic mixed precision examples: working with unscaled gradients.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from clew.checks.base import Check
from clew.checks.evidence.learning_rate_evidence import scale_free
from clew.checks.evidence.loop_facts import letters, orders
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.trainings import PHASE
from clew.checks.wording import too_few
from clew.records import signals
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class ClipIneffective(Check):
    id = "LOOP008"
    name = "clip-ineffective"
    needs = (signals.EVENTS_PATTERN,)
    scope = PHASE

    least: int = 10  # clip calls; fewer may be a warm-up
    sustained: float = 0.9  # share of the steps with a clip call that have it in the wrong place
    factor: float = 100.0  # norm over limit; clipping in published recipes cuts by about ten at most
    window: int = 50  # steps, nearly all of which must be cut by that much

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        clips = list(run.series(signals.CLIP_LIMIT))
        if not clips or max(len(s) for _, s in clips) < self.least:
            return
        site = clips[0][0]
        misplaced = self._misplaced(run)
        if misplaced is not None:
            yield self._wrong_place(run, site, *misplaced)
            return
        limits = dict(clips)
        for place, norm in run.series(signals.CLIP_NORM):
            if place in limits:
                yield from self._nothing_to_clip(run, norm)
                yield from self._far_too_low(run, norm, limits[place].median)

    def _misplaced(self, run: RunView) -> tuple[str, str] | None:
        """What is wrong with the order of events in nearly all steps that clip."""
        clipping = [o for o in orders(run) if "c" in letters(o.pattern)]
        total = sum(o.count for o in clipping)
        for test, what, fix in WRONG:
            hits = sum(o.count for o in clipping if test.search(letters(o.pattern)))
            if total >= self.least and hits >= self.sustained * total:
                return what, fix
        return None

    def _wrong_place(self, run: RunView, site: Site, what: str, fix: str) -> Finding:
        usual = max((o for o in orders(run) if "c" in letters(o.pattern)), key=lambda o: o.count)
        return self.finding(
            Severity.WARNING,
            message=what,
            fix=fix,
            site=site,
            step=usual.first,
            evidence=[
                Evidence(f"order of events in {usual.count} steps: {usual.pattern} ({LEGEND})"),
                *(
                    s.evidence("norm of the clipped gradients")
                    for place, s in run.series(signals.CLIP_NORM)
                    if place == site
                ),
            ],
        )

    def _nothing_to_clip(self, run: RunView, norm: Series) -> Iterator[Finding]:
        used = [s for _, s in run.series(signals.GRAD_NORM) if s.median > 0]
        if len(norm) >= self.least and norm.max == 0.0 and used:
            yield self.finding(
                Severity.WARNING,
                message=f"clipping finds no gradients in {len(norm)} calls, while the optimizer uses "
                f"gradients of norm {used[0].median:.3g}: it gets other parameters, or an exhausted "
                "generator",
                fix="clip_grad_norm_(model.parameters(), max_norm)  # call parameters() again each time",
                site=norm.site,
                step=int(norm.steps[0]),
                evidence=norm.evidence("norm of the clipped gradients"),
            )

    def _far_too_low(self, run: RunView, norm: Series, limit: float) -> Iterator[Finding]:
        recent = norm.last(self.window).finite()
        if len(recent) < self.window or not limit > 0 or math.isnan(limit):
            return
        if recent.share_above(self.factor * limit) < self.sustained:
            return
        free = scale_free(run)
        yield self.finding(
            Severity.ADVICE if free else Severity.WARNING,
            message=f"nearly every step is clipped by a factor of about {recent.median / limit:.0f}: the "
            f"limit {limit:.3g} determines the norm of the updates (fine only if you want a fixed norm)",
            fix=f"max_norm={recent.median:.2g}  # near the usual norm, to cut outliers only",
            site=norm.site,
            step=int(recent.steps[0]),
            evidence=norm.evidence(f"gradient norm before clipping to {limit:.3g}"),
        )

    def unjudged(self, run: RunView) -> str | None:
        most = max((len(s) for _, s in run.series(signals.CLIP_LIMIT)), default=self.least)
        return too_few(most, self.least, "clip calls")


LEGEND = "f forward, b backward, c clip, u unscale, s step, z zero_grad"
WRONG = (
    (
        re.compile(r"^[hme]*c.*s"),  # without an optimizer the clipping right after a backward is in time
        "gradients are clipped after the optimizer has used them: clip_grad_ comes after step()",
        "clip_grad_norm_(model.parameters(), max_norm)  # between backward() and step()",
    ),
    (
        re.compile(r"^[^bc]*[zfd][^bc]*c[^b]*b[^c]*s$"),
        "gradients are clipped before they exist: clip_grad_ comes before backward()",
        "clip_grad_norm_(model.parameters(), max_norm)  # between backward() and step()",
    ),
    (
        re.compile(r"b[^us]*c[^us]*u[^s]*s"),
        "gradients are clipped while they are still scaled: the limit is compared with values that the "
        "GradScaler has multiplied",
        "scaler.unscale_(optimizer)  # before clip_grad_norm_",
    ),
)
