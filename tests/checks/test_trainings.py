from __future__ import annotations

from fake_run import LOSS, LOSS_CALL, STEP, FakeRun

from clew.checks.grph.detached_graph import DetachedGraph
from clew.checks.loss.softmax_before_cross_entropy import SoftmaxBeforeCrossEntropy
from clew.checks.opt.missing_zero_grad import MissingZeroGrad
from clew.checks.runner import ask, judge
from clew.checks.sym.loss_spikes import LossSpikes
from clew.checks.trainings import phases, trainings
from clew.records.site import Site
from clew.records.verdict import NotJudged

ZERO_GRAD = MissingZeroGrad()


def several_trainings(*lengths: int, rate: float = 0.1) -> FakeRun:
    """One optimizer after the other, from the same line."""
    run, first = FakeRun(), 0
    for index, length in enumerate(lengths):
        steps = range(first, first + length)
        run.fact("optimizer", first, index=index, **{"class": "SGD"})
        run.signal("lr", [rate] * length, STEP, steps)
        run.signal(
            "mode.training", [1.0] * length, Site(module="", root=f"m{index}"), range(first, first + length)
        )
        first += length
    return run


def parts(run: FakeRun) -> list[tuple[int, int]]:
    return [(part.first, part.end) for part in trainings(run.view())]


def test_an_optimizer_that_takes_over_begins_a_training() -> None:
    run = several_trainings(60, 200)
    assert parts(run) == [(0, 60), (60, 260)]
    assert [part.optimizers for part in trainings(run.view())] == [{0}, {1}]


def test_two_optimizers_that_step_by_turns_are_one_training() -> None:
    run = several_trainings(100).fact("optimizer", 40, index=1, **{"class": "Adam"})
    run.signal("lr", [0.1] * 60, Site(op="step", file="train.py", line=40), range(40, 100))
    assert parts(run) == [(0, 100)]


def test_an_optimizer_recreated_every_few_steps_does_not_start_a_training_each_time() -> None:
    assert parts(several_trainings(*[5] * 12)) == [(0, 20), (20, 40), (40, 60)]


def test_a_second_optimizer_of_the_same_model_begins_a_phase_and_no_training() -> None:
    run = several_trainings(50, 50).signal("mode.training", [1.0] * 100, Site(module="", root="both"))
    assert [(p.first, p.end) for p in phases(run.view())] == [(0, 50), (50, 100)]
    assert parts(run) == [(0, 100)]


def test_a_fault_of_one_training_stays_one_though_more_right_steps_follow() -> None:
    run = several_trainings(60, 200).signal("grad.stale", [0, *[1] * 59, *[0] * 200], STEP)
    (found,), _ = ask(ZERO_GRAD, run.view())
    assert (found.step, found.site) == (1, STEP)
    assert found.evidence[-1].text == "in 1 of the 2 trainings of this run: steps 0 to 59"


def test_the_same_fault_in_every_training_is_reported_once() -> None:
    run = several_trainings(30, 30, 30).signal("grad.stale", [0, *[1] * 29] * 3, STEP)
    (found,), _ = ask(ZERO_GRAD, run.view())
    assert found.evidence[-1].text == "the same in all 3 trainings of this run"


def test_what_too_few_samples_of_each_training_show_is_judged_over_all_of_them() -> None:
    looks = [step for first in (0, 30, 60) for step in (first, first + 5, first + 20)]
    run = several_trainings(30, 30, 30).signal("grad.stale", [0, *[1] * 8], STEP, looks)
    (found,), _ = ask(ZERO_GRAD, run.view())
    assert "8 of the 8 sampled steps" in found.message


def test_the_first_loss_of_each_fold_is_no_spike() -> None:
    run = several_trainings(*[80] * 5)
    run.signal("loss", [6.0, *[1.0 + 0.01 * (n % 3) for n in range(79)]] * 5, LOSS)
    assert ask(LossSpikes(), run.view())[0] == []


def test_a_softmax_in_one_of_two_models_is_found_at_the_loss_they_share() -> None:
    for probabilities in ([1.0] * 30 + [0.0] * 30, [0.0] * 30 + [1.0] * 30):
        run = several_trainings(30, 30).signal("loss_input.simplex", probabilities, LOSS_CALL)
        run.fact("loss", kind="cross_entropy", file="train.py", line=29, input_shape=[8, 3])
        (found,), _ = ask(SoftmaxBeforeCrossEntropy(), run.view())
        assert found.site == LOSS_CALL


def announced(run: FakeRun) -> FakeRun:
    finding = {"check": "missing-zero-grad", "id": "OPT001", "severity": "error", "message": "m", "fix": "f"}
    return run.fact("announced", 12, check="missing-zero-grad", findings=[finding])


def test_an_error_that_was_reported_during_the_run_stays_in_its_verdict() -> None:
    run = announced(FakeRun().signal("grad.stale", [0.0] * 100, STEP))
    verdict = judge(run.view(), checks=[ZERO_GRAD])
    (found,) = verdict.findings
    assert found.evidence[-1].text == "reported at step 12, but no longer found over all 100 steps"
    assert verdict.ruled_out == ()


def test_an_error_that_is_still_found_is_reported_as_it_is_now() -> None:
    run = announced(FakeRun().signal("grad.stale", [0.0, *[1.0] * 99], STEP))
    (found,) = judge(run.view(), checks=[ZERO_GRAD]).findings
    assert found.message.startswith("gradients are never cleared")


def test_an_error_that_its_check_takes_back_leaves_the_reason() -> None:
    finding = {"check": "detached-graph", "id": "GRPH002", "severity": "error", "message": "m", "fix": "f"}
    run = FakeRun().fact("announced", 5, check="detached-graph", findings=[finding])
    run.fact("graph", 8, root="g", reached=6)
    verdict = judge(run.view(), checks=[DetachedGraph()])
    assert verdict.findings == ()
    assert verdict.not_judged == (
        NotJudged(
            "detached-graph", "reported at step 5, then withdrawn: the layers have had gradients since then"
        ),
    )


def test_an_error_that_is_to_be_ignored_is_not_brought_back() -> None:
    run = announced(FakeRun().signal("grad.stale", [0.0] * 100, STEP))
    assert judge(run.view(), checks=[ZERO_GRAD], ignore=["missing-zero-grad"]).findings == ()
