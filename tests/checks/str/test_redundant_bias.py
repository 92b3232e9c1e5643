from __future__ import annotations

from fake_run import FakeRun, findings

from clew.checks.str.redundant_bias import RedundantBias
from clew.records.finding import Severity

CHECK = RedundantBias()


def net(*biases: tuple[str, str]) -> FakeRun:
    rows = [{"layer": layer, "norm": norm} for layer, norm in biases]
    run = FakeRun().model(("a", "Conv2d"), ("bn", "BatchNorm2d"))
    return run.fact("structure", root="model", biases=rows)


def test_a_bias_that_is_subtracted_again_is_advice() -> None:
    (found,) = findings(CHECK, net(("a", "bn"), ("b", "bn2")))
    assert (found.severity, found.site.module, found.site.param) == (Severity.ADVICE, "a", "bias")
    assert "2 in all: a.bias, b.bias" in found.evidence[0].text


def test_without_such_a_bias_nothing_is_reported() -> None:
    assert not findings(CHECK, net())
