"""MODE001 eval-mode-in-training

## What it detects
Training steps whose forward ran in evaluation mode, over a sustained period, in a model with layers for
which that matters (dropout, batch normalisation).

## Why is this bad?
Dropout does nothing, and batch normalisation uses its running statistics and no longer updates them. The
model overfits, or trains with statistics that are more and more out of date. The usual cause is a
validation at the end of the first epoch that is not followed by `.train()`.

## How to fix
Call `model.train()` at the start of every training epoch, after each evaluation.

## Known problems
Fine-tuning the whole model in evaluation mode on purpose, to keep loaded statistics, looks the same; put
only those layers into evaluation mode instead, and repeat that after every `model.train()`. Models that
are in no optimizer are not checked.

## References
- PyTorch docs, autograd mechanics: evaluation mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.checks.base import Check
from clew.checks.run_view import RunView
from clew.checks.series import Series
from clew.checks.wording import listed, too_few
from clew.records import signals
from clew.records.facts.step_facts import ModeFact
from clew.records.finding import Evidence, Finding, Severity
from clew.records.site import Site


@dataclass(frozen=True)
class EvalModeInTraining(Check):
    id = "MODE001"
    name = "eval-mode-in-training"
    needs = (signals.MODE_TRAINING,)
    confidence = "certain"

    window: int = 10  # sampled training steps in a row, all of them in evaluation mode

    def diagnose(self, run: RunView) -> Iterator[Finding]:
        for site, series in run.series(signals.MODE_TRAINING):
            modes = _per_step(series)
            recent = modes.last(self.window)
            root = run.key(site)[0]
            layers = self._layers(run, root)
            if len(recent) == self.window and recent.max == 0.0 and layers and _optimised(run, root):
                yield self._finding(run, root, modes, layers)

    def _finding(self, run: RunView, root: str, modes: Series, layers: list[tuple[str, str]]) -> Finding:
        call = _eval_call(run, root)
        site = Site(module="", root=root, file=call.file if call else None, line=call.line if call else None)
        kinds = sorted({kind for _, kind in layers})
        since = modes.onset(modes.values == 0.0, sustained=0.99)
        return self.finding(
            Severity.WARNING,
            message=f"{run.module_name(site)} has been trained in evaluation mode since step {since}: "
            f"{listed(kinds)} {'does' if len(kinds) == 1 else 'do'} not work as in training",
            fix="model.train()  # at the start of every training epoch, after evaluation",
            site=site,
            step=since,
            evidence=[
                modes.evidence("1: training mode, 0: evaluation mode"),
                Evidence(f"layers that behave differently: {listed([f'{p} ({k})' for p, k in layers], 8)}"),
            ],
        )

    def _layers(self, run: RunView, root: str) -> list[tuple[str, str]]:
        """Path and class of what depends on the mode, from the call or from the model."""
        call = _eval_call(run, root)
        if call and call.mode_dependent:
            return list(call.mode_dependent)
        model = run.models.get(root)
        return [(x.path, x.kind) for x in model.layers if x.mode_dependent] if model else []

    def unjudged(self, run: RunView) -> str | None:
        most = max((len(_per_step(s)) for _, s in run.series(signals.MODE_TRAINING)), default=0)
        return too_few(most, self.window, "sampled training steps")


def _per_step(series: Series) -> Series:
    """One value per step: adversarial training makes its attacks in evaluation mode, then trains."""
    steps, starts = np.unique(series.steps, return_index=True)
    values = np.maximum.reduceat(series.values, starts) if len(starts) else series.values
    return Series(series.signal, series.site, steps, values)


def _optimised(run: RunView, root: str) -> bool:
    """A perceptual-loss network is in evaluation mode for good reason."""
    known = run.parameters.get(root)
    return known is None or known.optimised


def _eval_call(run: RunView, root: str) -> ModeFact | None:
    calls = run.known(ModeFact)
    return next((c for c in reversed(calls) if not c.training and c.root in (root, "")), None)
