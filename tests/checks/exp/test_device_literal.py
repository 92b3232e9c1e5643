from __future__ import annotations

from fake_run import FakeRun, findings

from clew.checks.exp.device_literal import DeviceLiteral
from clew.records.finding import Severity

PLACE = {"module": "", "op": "arange", "root": "model", "file": "net.py", "line": 9}


def test_a_tensor_that_is_created_on_the_cpu_is_advice_on_its_line() -> None:
    (found,) = findings(DeviceLiteral(), FakeRun().experiment("device-literal", device=PLACE))
    assert (found.severity, found.confidence) == (Severity.ADVICE, "certain")
    assert found.message == "on a GPU this forward would fail: arange creates its tensor on the CPU"
    assert (found.site.file, found.site.line) == ("net.py", 9)


def test_a_tensor_that_is_kept_in_an_attribute_should_be_a_buffer() -> None:
    held = {**PLACE, "module": "encoder", "held": "positions"}
    (found,) = findings(DeviceLiteral(), FakeRun().experiment("device-literal", device=held))
    assert "positions of encoder is a plain tensor" in found.message
    assert found.fix.startswith('self.register_buffer("positions", …)')


def test_a_fixed_dtype_is_advice_with_the_error() -> None:
    run = FakeRun().experiment("device-literal", dtype={**PLACE, "message": "expected Double, got Float"})
    (found,) = findings(DeviceLiteral(), run)
    assert found.message.startswith("the forward works only in single precision")
    assert found.evidence[0].text == "in float64: expected Double, got Float"


def test_a_model_that_moves_passes() -> None:
    assert not findings(DeviceLiteral(), FakeRun().experiment("device-literal", models=1))
