from __future__ import annotations

from collections.abc import Sequence

import pytest
from fake_run import LOSS, FakeRun, findings, weight

from clew.checks.opt.over_regularised import OverRegularised
from clew.records.finding import Severity
from clew.records.site import Site

CHECK = OverRegularised()
EVAL = Site(op="mse_loss", file="train.py", line=40, phase="eval")


def run(end: float = 1.0, steps: int = 60) -> FakeRun:
    return FakeRun().model(("a", "Linear")).signal("loss", [1.0] * 20 + [end] * (steps - 20), LOSS)


def decayed(
    left: float = 0.6, gradient: float = 1.0, decay: float = 1.0, end: float = 1.0, kind: str = "SGD"
) -> FakeRun:
    """A weight that shrinks from 1 to `left`, and what acts against the decay."""
    made = run(end)
    made.signal("weight.norm", [1.0] * 10 + [left] * 10, weight("a"))
    made.signal("gradient.norm", [gradient] * 20, weight("a"))
    made.signal("update.norm", [gradient] * 20, weight("a"))
    group = {"lr": 0.1, "weight_decay": decay, "params": ["a.weight"]}
    made.fact("optimizer", index=0, file="train.py", line=7, groups=[group])
    made.facts[-1].data["class"] = kind
    return made


def test_a_decay_that_outweighs_the_gradient_is_found_where_the_optimizer_is_made() -> None:
    (found,) = findings(CHECK, decayed())
    assert (found.severity, found.site.line) == (Severity.WARNING, 7)
    assert found.fix == "weight_decay=0.01  # instead of 1"


def test_decay_against_half_its_force_is_found_and_against_more_is_not() -> None:
    assert findings(CHECK, decayed(gradient=1.19))
    assert not findings(CHECK, decayed(gradient=1.2))


def test_decoupled_decay_is_measured_against_the_whole_update() -> None:
    assert findings(CHECK, decayed(gradient=0.11, kind="AdamW"))
    assert not findings(CHECK, decayed(gradient=0.13, kind="AdamW"))


def test_weights_that_keep_their_size_or_a_loss_that_falls_are_no_fault() -> None:
    assert findings(CHECK, decayed(left=0.7, gradient=0.5))
    assert not findings(CHECK, decayed(left=0.71, gradient=0.5))
    assert findings(CHECK, decayed(end=0.9))
    assert not findings(CHECK, decayed(end=0.89))


def test_without_weights_the_loss_may_be_below_its_start() -> None:
    assert findings(CHECK, decayed(left=0.09, gradient=0.1, end=0.5))
    assert not findings(CHECK, decayed(left=0.09, gradient=0.1, end=0.49))


def test_forty_nine_losses_give_no_verdict() -> None:
    short = run(steps=49)
    assert not findings(CHECK, short)
    assert CHECK.unjudged(short.view()) == "needs 50 steps, has 49"


def dropped(p: float = 0.7, evaluations: Sequence[float] = (0.6, 0.6, 0.6)) -> FakeRun:
    row = {"path": "a", "p": p, "module": True, "norm": None, "loss": False}
    made = run().fact("structure", root="model", dropouts=[row])
    return made.signal("loss", evaluations, EVAL, [19, 39, 59])


def test_dropout_that_holds_training_back_is_found() -> None:
    (found,) = findings(CHECK, dropped())
    assert "the loss is 1 with it and 0.6 without" in found.message
    assert not findings(CHECK, dropped(p=0.69))
    assert not findings(CHECK, dropped(evaluations=(0.6, 0.6, 0.67)))


def tried(on: float, off: float = 1.0, decay_off: float = 0.0, seeds: int = 3) -> FakeRun:
    """The experiment: by how much the loss falls with regularisation, without it, and without decay."""
    gains = {"on": [on] * seeds, "off": [off] * seeds, "without decay": [decay_off]}
    return FakeRun().experiment(
        "over-regularised", start=2.0, steps=40, decay=0.5, dropouts=[["drop", 0.9]], gains=gains
    )


@pytest.mark.parametrize(
    ("made", "count"),
    [
        (tried(0.2), 1),
        (tried(0.21), 0),
        (tried(0.0, off=0.2), 0),  # the loss hardly falls without it either
        (tried(0.0, seeds=2), 0),  # too few seeds
    ],
)
def test_a_loss_that_falls_only_without_regularisation_is_a_warning(made: FakeRun, count: int) -> None:
    assert len(findings(CHECK, made)) == count


@pytest.mark.parametrize(("alone", "blamed"), [(0.51, "weight decay 0.5"), (0.5, "dropout of 90%")])
def test_what_alone_keeps_the_loss_from_falling_is_to_blame(alone: float, blamed: str) -> None:
    (found,) = findings(CHECK, tried(0.0, decay_off=alone))
    assert found.message.startswith(f"{blamed} keeps the network from learning")
    assert found.evidence[-1].text == (
        f"loss after the experiment: 2 as it is, 1 without regularisation, {2 - alone:.3g} without decay"
    )
