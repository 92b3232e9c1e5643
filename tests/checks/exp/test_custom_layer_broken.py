from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.custom_layer_broken import CustomLayerBroken
from clew.records.finding import Severity


def made(**fault: object) -> FakeRun:
    place = {"module": "scale", "root": "model", "file": "net.py", "line": 7}
    return FakeRun().experiment("custom-layer-broken", faults=[{"class": "Scale", "place": place, **fault}])


@pytest.mark.parametrize(
    ("use", "severity", "fix"),
    [
        ("trained", Severity.ERROR, "self.gain = nn.Parameter(…)"),
        ("state", Severity.WARNING, 'self.register_buffer("gain", …)'),
        ("constant", Severity.ADVICE, 'self.register_buffer("gain", …, persistent=False)'),
    ],
)
def test_a_tensor_in_a_plain_attribute_is_as_bad_as_its_use(use: str, severity: Severity, fix: str) -> None:
    (found,) = findings(CustomLayerBroken(), made(what="plain", name="gain", use=use, shape=[4]))
    assert (found.severity, found.fix) == (severity, fix)
    assert "self.gain of Scale" in found.message
    assert (found.site.file, found.site.line) == ("net.py", 7)


def test_a_copy_that_differs_after_loading_is_a_warning() -> None:
    (found,) = findings(CustomLayerBroken(), made(what="state_dict"))
    assert found.severity is Severity.WARNING
    assert found.message == "a copy of Scale that loads its state_dict gives a different output"


@pytest.mark.parametrize(("error", "count"), [(0.0011, 1), (0.001, 0), (None, 0)])
def test_a_gradient_must_agree_with_finite_differences(error: float | None, count: int) -> None:
    run = made(what="gradient", of="x", autograd=1.0, finite=2.0, error=error)
    assert len(findings(CustomLayerBroken(), run)) == count


@pytest.mark.parametrize(("effect", "count"), [(0.0011, 1), (0.001, 0)])
def test_other_samples_must_not_matter(effect: float, count: int) -> None:
    found = findings(CustomLayerBroken(), made(what="leak", effect=effect))
    assert len(found) == count
    assert all(
        f.evidence[0].text.endswith("times as much as when the sample itself is replaced") for f in found
    )


@pytest.mark.parametrize(("whole", "count"), [({"effect": 0.0}, 0), ({"effect": 0.1, "meant": "x"}, 0)])
def test_layers_may_mix_samples_within_a_model_that_does_not(whole: dict[str, object], count: int) -> None:
    run = made(what="leak", effect=0.5).experiment("batch-leak", **whole)
    assert len(findings(CustomLayerBroken(), run)) == count
