"""A sampling budget for which every step takes the same time, however busy the machine is.

Which steps are sampled depends on what samples cost. A first step that took a second, because the cores were
busy, would leave no credit for the next ones. Tests that count samples use this budget instead of the clock.
"""

from __future__ import annotations

import pytest

from clew.hooks.steps import watcher
from clew.hooks.steps.sampling_budget import SamplingBudget

STEP = 1e-3  # seconds of a light step,
LIGHT = 1e-5  # of which are Clew's own,
SAMPLE = 1e-3  # and what a sampled step costs in addition


class SteadyBudget(SamplingBudget):
    """Gets the times above, not those that were measured."""

    def account(self, step: int, sampled: bool, own: float, total: float) -> None:
        extra = SAMPLE if sampled else 0.0
        self.excused = 0.0
        super().account(step, sampled, LIGHT + extra, STEP + extra)

    def account_light(self, steps: int, own: float, total: float) -> None:
        super().account_light(steps, steps * LIGHT, steps * STEP)


@pytest.fixture(autouse=True)
def steady_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """For sessions in this process."""
    monkeypatch.setattr(watcher, "SamplingBudget", SteadyBudget)
