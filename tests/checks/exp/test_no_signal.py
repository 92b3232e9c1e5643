from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.no_signal import NoSignal
from clew.checks.runner import ask
from clew.records.finding import Severity


def losses(deviations: float) -> dict[str, object]:
    """A loss so many standard deviations below those of permuted labels."""
    return {"real": 1.0 - 0.1 * deviations, "permuted": [0.9, 1.1]}


def made(
    learner: float = 1.0, held_out: float = 0.0, trained: float = 5.1, samples: int = 200, tried: bool = True
) -> FakeRun:
    scores = [{"learner": "linear", "real": 0.01, "permuted": [-0.02, 0.02], "deviations": learner}]
    model = {"steps": 100, "held_out": losses(held_out), "trained": losses(trained)} if tried else None
    return FakeRun().experiment(
        "no-signal", samples=samples, scores=scores, model=model, line=["train.py", 12]
    )


def test_labels_that_nothing_predicts_are_a_warning() -> None:
    (found,) = findings(NoSignal(), made())
    assert (found.severity, found.confidence) == (Severity.WARNING, "possible")
    assert found.message.startswith("nothing in the inputs of 200 samples predicts their labels")
    assert [e.text.partition(":")[0] for e in found.evidence] == [
        "linear learner",
        "the model after 100 steps, training samples",
        "the model after 100 steps, unseen samples",
    ]


@pytest.mark.parametrize(("learner", "held_out", "samples"), [(2.5, 0.0, 200), (2.4, 2.6, 200)])
def test_a_learner_or_a_model_that_predicts_them_is_signal(
    learner: float, held_out: float, samples: int
) -> None:
    assert ask(NoSignal(), made(learner, held_out, samples=samples).view()) == ([], None)


@pytest.mark.parametrize("run", [made(trained=4.9), made(tried=False), made(samples=199)])
def test_a_model_that_has_not_learned_enough_leaves_it_open(run: FakeRun) -> None:
    found, reason = ask(NoSignal(), run.view())
    assert not found
    assert reason is not None
    assert reason.startswith("simple learners found nothing, but they may be too weak")
