from __future__ import annotations

from collections.abc import Sequence

from fake_run import STEP, FakeRun, findings, parameter, weight

from clew.checks.opt.update_ratio_off import UpdateRatioOff
from clew.records.finding import Severity

CHECK = UpdateRatioOff()


def run(ratios: Sequence[float], gradients: Sequence[float] = (0.1,) * 4, samples: int = 20) -> FakeRun:
    paths = [f"l{n}" for n in range(len(ratios))]
    made = FakeRun().model(*((path, "Linear") for path in paths)).signal("lr", [0.01] * 60, STEP)
    for path, ratio, gradient in zip(paths, ratios, gradients, strict=False):
        made.signal("update.ratio", [ratio] * samples, weight(path))
        made.signal("gradient.norm", [gradient] * samples, weight(path))
        made.signal("weight.norm", [1.0] * samples, weight(path))
    return made


def test_a_layer_a_hundred_times_slower_than_the_others_is_found() -> None:
    (found,) = findings(CHECK, run([9.9e-6, 1e-3, 1e-3]))
    assert (found.severity, found.site.module) == (Severity.WARNING, "l0")
    assert "multiply the learning rate" in found.fix
    assert not findings(CHECK, run([1e-5, 1e-3, 1e-3]))


def test_a_layer_a_hundred_times_faster_is_found() -> None:
    (found,) = findings(CHECK, run([1e-3, 0.11, 1e-3]))
    assert "too high" in found.message
    assert not findings(CHECK, run([2e-3, 0.11, 2e-3]))


def test_a_layer_whose_gradient_is_small_too_is_left_to_others() -> None:
    assert not findings(CHECK, run([1e-6, 1e-3, 1e-3], gradients=[0.009, 0.1, 0.1]))


def test_a_whole_model_far_from_a_thousandth_is_advice_on_either_side() -> None:
    assert [f.severity for f in findings(CHECK, run([0.11] * 3))] == [Severity.ADVICE]
    assert [f.severity for f in findings(CHECK, run([9e-6] * 3))] == [Severity.ADVICE]
    assert not findings(CHECK, run([0.1] * 3))
    assert not findings(CHECK, run([1e-5] * 3))


def test_the_end_of_a_schedule_is_no_reason() -> None:
    decayed = run([9e-6] * 3).signal("lr", [0.001], STEP, [60])
    assert not findings(CHECK, decayed)


def test_nineteen_samples_give_no_verdict_and_loaded_models_may_be_slow() -> None:
    few = run([1e-6, 1e-3, 1e-3], samples=19)
    assert not findings(CHECK, few)
    assert CHECK.unjudged(few.view()) == "needs 20 sampled steps, has 19"
    assert not findings(CHECK, run([1e-6, 1e-3, 1e-3]).parameters(parameter("l0", loaded=True)))
