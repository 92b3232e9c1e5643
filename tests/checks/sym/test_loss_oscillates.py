from __future__ import annotations

from collections.abc import Sequence

from fake_run import LOSS, STEP, FakeRun, findings

from clew.checks.sym.loss_oscillates import LossOscillates
from clew.records.finding import Severity

CHECK = LossOscillates()


def run(swing: float = 0.12, steps: int = 80, hashes: Sequence[float] = (5.0,) * 10) -> FakeRun:
    made = FakeRun().signal("loss", [1.0 + swing * (n % 2) for n in range(steps)], LOSS)
    return made.signal("batch.hash", hashes).signal("lr", [0.1] * steps, STEP)


def test_a_swing_on_the_same_batch_is_found_at_the_step_call() -> None:
    (found,) = findings(CHECK, run())
    assert (found.severity, found.site) == (Severity.ADVICE, STEP)
    assert found.fix.startswith("lr=0.05")


def test_a_small_swing_is_none() -> None:
    assert not findings(CHECK, run(swing=0.09))


def test_changing_batches_are_not_judged() -> None:
    changing = run(hashes=[1.0, 2.0] * 5)
    assert not findings(CHECK, changing)
    assert "the batches differ" in str(CHECK.unjudged(changing.view()))


def test_one_step_too_few_gives_no_verdict() -> None:
    short = run(steps=79)
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 80 steps, has 79"


def test_a_loss_that_falls_fast_does_not_swing() -> None:
    falling = FakeRun().signal("loss", [0.85**n for n in range(80)], LOSS).signal("batch.hash", [5.0] * 10)
    assert not findings(CHECK, falling)


def test_dropout_may_be_what_makes_it_restless() -> None:
    row = {"path": "drop", "p": 0.1, "module": True, "norm": None, "loss": False}
    assert not findings(CHECK, run().fact("structure", root="model", dropouts=[row]))


def test_an_optimizer_that_tries_steps_out_is_not_judged() -> None:
    assert not findings(CHECK, run().fact("optimizer", index=0, closure=True))
