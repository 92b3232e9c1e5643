from __future__ import annotations

from collections.abc import Sequence

from fake_run import LOSS, NOWHERE, FakeRun, findings

from clew.checks.sym.loss_spikes import LossSpikes
from clew.records.finding import Severity

CHECK = LossSpikes()


def run(
    spikes: Sequence[int] = (20, 35, 50), height: float = 3.1, steps: int = 60, batch: int = 8
) -> FakeRun:
    """A loss of about one, a little restless, that jumps at the given steps."""
    losses = [1.0 + 0.02 * (n % 2) for n in range(steps)]
    for n in spikes:
        losses[n] = height
    return FakeRun().signal("loss", losses, LOSS).signal("batch.size", [batch] * steps, NOWHERE)


def test_three_jumps_are_found_from_the_first_on() -> None:
    (found,) = findings(CHECK, run())
    assert (found.severity, found.step, found.site) == (Severity.ADVICE, 20, LOSS)
    assert "3 times" in found.message


def test_two_jumps_or_lower_ones_are_chance() -> None:
    assert not findings(CHECK, run(spikes=(20, 50)))
    assert not findings(CHECK, run(height=3.0))


def test_very_many_are_noise() -> None:
    assert findings(CHECK, run(spikes=range(12, 60, 8)))
    assert not findings(CHECK, run(spikes=range(12, 60, 6)))


def test_jumps_within_the_noise_are_none() -> None:
    noisy = FakeRun().signal("loss", [0.1, 4.0, 1.0, 3.0, 0.2, 1.0] * 12, LOSS)
    assert not findings(CHECK, noisy)


def test_small_batches_and_short_runs_are_not_judged() -> None:
    small = run(batch=7)
    assert not findings(CHECK, small)
    assert "fewer than 8 samples" in str(CHECK.unjudged(small.view()))
    short = run(spikes=(20, 30, 40), steps=59)
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 60 steps, has 59"


def test_jumps_of_a_loss_that_is_next_to_nothing_do_not_count() -> None:
    losses = [1.0] * 20 + [0.01] * 60
    for n in (40, 50, 60):
        losses[n] = 0.09
    assert not findings(CHECK, FakeRun().signal("loss", losses, LOSS))


def test_an_optimizer_that_tries_steps_out_is_not_judged() -> None:
    assert not findings(CHECK, run().fact("optimizer", index=0, closure=True))
