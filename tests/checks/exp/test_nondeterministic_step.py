from __future__ import annotations

import pytest
from fake_run import FakeRun, findings

from clew.checks.exp.nondeterministic_step import NondeterministicStep
from clew.records.finding import Severity


def made(kind: str, relative: float = 0.1, **more: object) -> FakeRun:
    place = {"module": "noise", "op": "add", "root": "model", "file": "net.py", "line": 6}
    return FakeRun().experiment(
        "nondeterministic-step", kind=kind, losses=[1.5, 1.25], relative=relative, place=place, **more
    )


@pytest.mark.parametrize(("relative", "severity"), [(1.1e-5, Severity.WARNING), (1e-5, Severity.ADVICE)])
def test_numbers_that_no_seed_controls_are_a_warning_unless_they_hardly_differ(
    relative: float, severity: Severity
) -> None:
    (found,) = findings(NondeterministicStep(), made("outside", relative))
    assert found.severity is severity
    assert found.message.endswith("gives different numbers: add in noise gives a different result")
    assert found.evidence[0].text == "the loss is 1.5, then 1.25"


def test_a_generator_of_the_program_is_advice_that_names_it() -> None:
    (found,) = findings(NondeterministicStep(), made("generator", generators=["self.rng"]))
    assert found.severity is Severity.ADVICE
    assert "its own random generator (self.rng)" in found.message


def test_state_in_an_attribute_is_advice() -> None:
    (found,) = findings(NondeterministicStep(), made("kept", whole=False))
    assert found.severity is Severity.ADVICE
    assert found.message.startswith("the same step gives a different result the second time: add in noise")
    assert found.evidence[0].text == "the mean of the model's output is 1.5, then 1.25"


def test_a_step_that_repeats_exactly_passes() -> None:
    assert not findings(NondeterministicStep(), made("same"))
