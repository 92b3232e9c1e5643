from __future__ import annotations

import pytest
from fake_run import FakeRun, findings
from loss_calls import call_site

from clew.checks.loss.loss_term_imbalance import LossTermImbalance
from clew.records.finding import Severity

CHECK = LossTermImbalance()
LARGE = call_site("mse_loss", 30)


def two_terms(
    share: float, value: float = 2.3, kind: str = "cross_entropy", steps: int = 20, spread: float = 1.0
) -> FakeRun:
    small = call_site(kind)
    run = FakeRun().signal("loss", [1.0] * steps)
    run.signal("term.share", [share] * steps, small).signal("term.share", [1 - share] * steps, LARGE)
    run.signal("term.value", [value] * steps, small)
    run.signal("loss_call.value", [value] * steps, small).signal("loss_call.chance", [2.3] * steps, small)
    run.signal("loss_call.value", [0.1] * steps, LARGE).signal("loss_call.chance", [2.3] * steps, LARGE)
    return run.signal("target.std", [spread] * steps, small)


def test_an_unlearned_term_that_makes_up_next_to_nothing_is_drowned_by_the_other() -> None:
    (found,) = findings(CHECK, two_terms(0.0049))
    assert (found.severity, found.site) == (Severity.WARNING, call_site("cross_entropy"))
    assert any(e.site == LARGE for e in found.evidence)


@pytest.mark.parametrize(
    "run",
    [
        two_terms(0.005),
        two_terms(0.001, value=1.3),
        two_terms(0.001, kind="kl_div"),
        two_terms(0.001, spread=0.0),
        two_terms(0.001).fact("optimizer").fact("optimizer"),
    ],
    ids=["large enough", "learned", "meant small", "towards a constant", "adversarial"],
)
def test_terms_that_may_be_meant_so_are_left_alone(run: FakeRun) -> None:
    assert not findings(CHECK, run)


def test_one_step_too_few_gives_no_verdict() -> None:
    run = two_terms(0.001, steps=19)
    assert not findings(CHECK, run)
    assert CHECK.unjudged(run.view()) == "needs 20 sampled steps, has 19"
