"""Faster settings tried on a snapshot, with a clock that only planted costs move."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fake_step_clock import Costly, Counting, Ticks, classifier, data, everything, many_parameters, same
from torch import Tensor, nn

from clew.labs.profiler.step_experiments import compiled_step, step_changes
from clew.labs.profiler.step_experiments.faster_experiments import try_faster
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.tried_changes import (
    BFLOAT16,
    CHANNELS_LAST,
    FOREACH,
    FUSED,
    NO_GRADIENTS,
    SET_TO_NONE,
    TriedChange,
)

CLOCK = Ticks()


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch: pytest.MonkeyPatch):
    """Compiling has tests of its own: it takes seconds."""
    monkeypatch.setattr(compiled_step, "impossible", lambda: "not here")


def tried(subject: Subject, **options: Any) -> dict[str, TriedChange]:
    """With a clock of the test's own, so that nothing takes long and nothing depends on the machine."""
    facts: list[dict[str, Any]] = []
    options = {"now": Counting().now, "time_limit": 1e6, "threads": False, **options}
    found = try_faster(
        subject, lambda fact: facts.append({"kind": fact.fact_kind, **fact.to_json()}), **options
    )
    assert [f["kind"] for f in facts] == ["attempt"] * len(found)
    read = [TriedChange.from_json(json.loads(json.dumps(fact))) for fact in facts]
    assert read == found, "what is recorded is what was found"
    return {a.name: a for a in found}


class ByLoop(torch.optim.SGD):
    """Takes long for every parameter, unless all are updated at once."""

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            CLOCK.take(0.02 if group["foreach"] or group["fused"] else 0.1 * len(group["params"]))
        return super().step(closure)


def test_an_optimizer_that_goes_parameter_by_parameter_gains_from_foreach():
    model = many_parameters()
    found = tried(classifier(model, data(), ByLoop(model.parameters(), lr=0.1)), now=CLOCK.now)
    for name in (FOREACH, FUSED):
        assert found[name].clear
        assert found[name].gain == pytest.approx(1 - 0.02 / 1.6)
        assert found[name].same
        assert found[name].difference["update"] < 1e-5
        assert found[name].rounds >= 5
    assert found[FOREACH].setting == "ByLoop(…, foreach=True)"


def test_a_setting_without_effect_is_not_called_a_gain():
    model = nn.Sequential(Costly(CLOCK, 1.0), nn.Linear(4, 4))
    found = tried(
        classifier(model, data(), torch.optim.SGD(model.parameters(), lr=0.1)),
        now=CLOCK.now,
    )
    assert found[FOREACH].tried
    assert not any(attempt.clear for attempt in found.values())
    assert found[FOREACH].gain == pytest.approx(0.0)


def test_what_the_program_has_already_is_not_tried():
    model = many_parameters(2)
    fused = torch.optim.Adam(model.parameters(), fused=True)
    assert [c.name for c in step_changes.changes(classifier(model, data(), fused), threads=False)] == [
        BFLOAT16
    ]
    double = many_parameters(2).double()
    x, y = data()
    own = torch.optim.LBFGS(double.parameters())
    assert not list(step_changes.changes(classifier(double, (x.double(), y), own), threads=False))


def test_convolutions_are_tried_with_channels_last_and_given_such_input():
    torch.manual_seed(0)
    seen: set[bool] = set()

    class Look(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            seen.add(x.is_contiguous(memory_format=torch.channels_last))
            return x

    model = nn.Sequential(
        Look(), nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(64, 4)
    )
    batch = torch.randn(4, 3, 8, 8), torch.randint(4, (4,))
    found = tried(classifier(model, batch, torch.optim.Adam(model.parameters())))
    assert found[CHANNELS_LAST].tried
    assert found[CHANNELS_LAST].same
    assert seen == {True, False}


def test_single_channels_and_dense_layers_have_no_format_to_choose():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 4))
    subject = classifier(model, (torch.randn(4, 1, 8, 8), torch.randint(4, (4,))))
    assert CHANNELS_LAST not in [c.name for c in step_changes.changes(subject)]


def test_bfloat16_says_how_far_its_numbers_are_off():
    model = many_parameters(3)
    found = tried(classifier(model, data(), torch.optim.SGD(model.parameters(), lr=0.1)))[BFLOAT16]
    assert found.same is None
    assert 1e-5 < found.difference["gradient"] < 0.5


def test_a_way_that_is_many_times_slower_is_left_after_a_few_steps(monkeypatch: pytest.MonkeyPatch):
    steps: list[float] = []

    class Slow(ByLoop):
        def step(self, closure: Any = None) -> Any:
            if self.param_groups[0]["foreach"]:
                CLOCK.take(50.0)
                steps.append(50.0)
            return super().step(closure)

    model = many_parameters()
    found = tried(classifier(model, data(), Slow(model.parameters(), lr=0.1)), now=CLOCK.now, time_limit=1e5)
    assert found[FOREACH].clear
    assert found[FOREACH].gain < -3
    assert len(steps) == 3


def test_a_program_that_keeps_zeroed_gradients_is_tried_without(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("for x, y in loader:\n    optimizer.zero_grad(set_to_none = False)\n")
    model = many_parameters(3)
    subject = classifier(model, data(), torch.optim.SGD(model.parameters(), lr=0.1))
    assert SET_TO_NONE not in [c.name for c in step_changes.changes(subject)]
    subject.line = (str(file), 1)
    change = next(iter(step_changes.changes(subject)))
    assert change.name == SET_TO_NONE
    assert not step_changes.own_variant(subject).set_to_none
    assert change.variant(step_changes.own_variant(subject)).set_to_none


def test_evaluation_is_timed_by_its_forwards_alone():
    class Graphs(nn.Module):
        """Takes long if a graph is kept."""

        def forward(self, x: Tensor) -> Tensor:
            CLOCK.take(1.0 if torch.is_grad_enabled() else 0.25)
            return x

    model = nn.Sequential(Graphs(), nn.Linear(4, 4))
    found = tried(
        classifier(model, data(), torch.optim.SGD(model.parameters(), lr=0.1)),
        now=CLOCK.now,
        evaluation=True,
    )
    assert found[NO_GRADIENTS].what == "evaluation"
    assert found[NO_GRADIENTS].gain == pytest.approx(0.75)
    assert found[NO_GRADIENTS].before == pytest.approx(1.0)


def test_without_time_nothing_is_begun_and_it_is_said():
    model = nn.Sequential(Costly(CLOCK, 1.0), nn.Linear(4, 4))
    subject = classifier(model, data(), torch.optim.SGD(model.parameters(), lr=0.1))
    found = tried(subject, now=CLOCK.now, time_limit=5.0)
    assert found
    assert all("time limit reached" in a.reason or a.reason == "not here" for a in found.values())


def test_a_failing_change_is_reported_in_one_line_and_the_others_go_on():
    class Fussy(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            if self.param_groups[0]["foreach"]:
                raise RuntimeError("one by one, please\nand more")
            return super().step(closure)

    model = many_parameters(3)
    found = tried(classifier(model, data(), Fussy(model.parameters(), lr=0.1)))
    assert found[FOREACH].reason == "RuntimeError: one by one, please"
    assert found[FUSED].tried


def test_a_step_that_can_not_be_made_again_says_what_would_help():
    subject = Subject({"Linear": nn.Linear(2, 2)}, reasons={"step": "the loss is not known"})
    subject.hints["step"] = "hand it over"
    found = tried(subject)[""]
    assert found.reason == "the loss is not known"
    assert found.rest["hint"] == "hand it over"


def test_dropout_is_compared_in_evaluation_mode():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 4))
    found = tried(classifier(model, data(), torch.optim.Adam(model.parameters())))[FUSED]
    assert "evaluation mode" in found.rest["compared"]
    assert found.same


def test_a_step_that_is_random_in_evaluation_too_is_not_compared():
    model = many_parameters(2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data()
    subject = subject_of(
        model, None, x, optimizer, step=lambda x: F.cross_entropy(model(x + torch.randn(8, 4)), y)
    )
    found = tried(subject)[FUSED]
    assert "not compared" in found.rest["compared"]
    assert found.same is None
    assert not found.difference


def test_a_change_that_computes_something_else_is_never_recommended():
    class Wrong(ByLoop):
        def step(self, closure: Any = None) -> Any:
            if self.param_groups[0]["foreach"]:
                for p in self.param_groups[0]["params"]:
                    p.grad *= 2
            return super().step(closure)

    model = many_parameters()
    found = tried(classifier(model, data(), Wrong(model.parameters(), lr=0.1)), now=CLOCK.now)[FOREACH]
    assert found.clear
    assert found.same is False
    assert not found.helps


def test_everything_is_afterwards_as_it_was_bit_by_bit():
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.1), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4)
    )
    model[1].eval()
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(4, 2, 8, 8), torch.randint(4, (4,))
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(model(batch[0]), batch[1]).backward()
        optimizer.step()
    subject = classifier(model, batch, optimizer)
    before = everything(model, optimizer)
    found = tried(subject, evaluation=True, threads=True)
    assert len(found) >= 5
    assert all(a.tried or a.reason == "not here" for a in found.values())
    after = everything(model, optimizer)
    assert [name for name in before if not same(before[name], after[name])] == []
