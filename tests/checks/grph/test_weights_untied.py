from __future__ import annotations

from typing import Any

import pytest
from fake_run import FakeRun, findings, parameter

from clew.checks.grph.weights_untied import WeightsUntied
from clew.records.finding import Severity

CHECK = WeightsUntied()


def untied(how: str, optimizer: int | None = 0) -> FakeRun:
    run = FakeRun().parameters(parameter("out", optimizer=optimizer))
    return run.fact("untied", 3, root="model", first="embed.weight", second="out.weight", how=how)


def loaded(keys: int, missing: list[str], unexpected: list[str], **more: Any) -> FakeRun:
    run = FakeRun().parameters(parameter("fc"))
    data = {"file": "train.py", "line": 4, "keys": keys, "missing": missing, "unexpected": unexpected}
    return run.fact("state_loaded", **{**data, "missing_count": len(missing), **more}, **{"class": "Net"})


@pytest.mark.parametrize("how", ["assigned", "replaced", "copied"])
def test_weights_that_are_no_longer_tied_are_a_warning(how: str) -> None:
    (found,) = findings(CHECK, untied(how))
    assert (found.severity, found.site.module, found.site.param) == (Severity.WARNING, "out", "weight")
    assert found.fix.startswith("model.out.weight = model.embed.weight")


def test_a_model_that_is_not_trained_is_not_judged() -> None:
    assert not findings(CHECK, untied("assigned", optimizer=None))


def test_a_renamed_prefix_is_found_and_its_repair_given() -> None:
    (found,) = findings(CHECK, loaded(4, ["fc.weight"], ["module.fc.weight"]))
    assert found.site.line == 4
    assert found.fix == "state = {k.removeprefix('module.'): v for k, v in state.items()}"
    (found,) = findings(CHECK, loaded(4, ["net.fc.weight"], ["fc.weight"]))
    assert found.fix == "state = {'net.' + k: v for k, v in state.items()}"


def test_half_of_the_keys_must_be_filled() -> None:
    missing, other = ["a", "b", "c"], ["x.y"]
    assert findings(CHECK, loaded(5, missing, other))
    assert not findings(CHECK, loaded(6, missing, other))


def test_a_new_head_on_a_loaded_backbone_is_fine_tuning() -> None:
    assert not findings(CHECK, loaded(10, ["head.weight", "head.bias"], ["classifier.weight"]))
    assert not findings(CHECK, loaded(3, ["head.weight", "head.bias"], []))
