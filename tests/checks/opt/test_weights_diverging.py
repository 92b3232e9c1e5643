from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from fake_run import LOSS, FakeRun, findings, weight

from clew.checks.opt.weights_diverging import WeightsDiverging
from clew.records.finding import Severity

CHECK = WeightsDiverging()
FLAT = [1.0] * 60
ROOT = 8.0  # of the 64 elements of a layer


def run(last: float, losses: Sequence[float] = FLAT, first: float = 0.1, samples: int = 20) -> FakeRun:
    """A weight whose root mean square grows evenly from `first` to `last`."""
    norms = ROOT * np.geomspace(first, last, samples)
    made = FakeRun().model(("a", "Linear"), ("b", "Linear")).signal("loss", losses, LOSS)
    return made.signal("weight.norm", list(norms), weight("a"))


def test_weights_that_grow_away_without_a_gain_are_found() -> None:
    (found,) = findings(CHECK, run(1.6))
    assert (found.severity, found.site.module) == (Severity.WARNING, "a")
    assert "does not improve" in found.message


def test_small_weights_may_grow_and_large_ones_stand() -> None:
    assert not findings(CHECK, run(0.99, first=0.01)), "a hundredfold, and still of usual size"
    assert not findings(CHECK, run(2.0, first=0.25)), "eightfold"


def test_growth_that_has_ended_is_none() -> None:
    norms = [ROOT * 0.1] * 5 + [ROOT * 2.0] * 20
    made = (
        FakeRun().model(("a", "Linear")).signal("loss", FLAT, LOSS).signal("weight.norm", norms, weight("a"))
    )
    assert not findings(CHECK, made)


def test_growth_is_judged_by_steps_though_samples_lie_close_at_the_start() -> None:
    norms = [ROOT * n for n in (0.1, *np.geomspace(0.2, 2.0, 30), 2.01, 2.01)]
    steps = [*range(31), 150, 247]
    made = FakeRun().model(("a", "Linear")).signal("loss", FLAT, LOSS)
    assert not findings(CHECK, made.signal("weight.norm", norms, weight("a"), steps))


def test_a_loss_that_falls_excuses_growth_unless_it_falls_without_bound() -> None:
    falling = list(np.linspace(1.0, 0.2, 60))
    assert not findings(CHECK, run(1.6, losses=falling))
    unbounded = [-(math.exp(n / 6)) for n in range(60)]
    (found,) = findings(CHECK, run(1.6, losses=unbounded))
    assert "falls without bound" in found.message


def test_nineteen_samples_give_no_verdict() -> None:
    few = run(1.6, samples=19)
    assert not findings(CHECK, few)
    assert CHECK.unjudged(few.view()) == "needs 20 sampled steps, has 19"
