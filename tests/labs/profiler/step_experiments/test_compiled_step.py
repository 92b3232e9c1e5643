"""torch.compile tried on a snapshot, with a back end that needs no C++ compiler."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fake_step_clock import Counting, Ticks, classifier, data, everything, same
from torch import Tensor, nn

from clew.labs.profiler.step_experiments import compiled_step, faster_experiments
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.tried_changes import COMPILE, TriedChange


@pytest.fixture(autouse=True)
def without_inductor(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiled_step, "BACKEND", "eager")
    monkeypatch.setattr(compiled_step, "_has_compiler", lambda: True)
    monkeypatch.setattr(faster_experiments, "changes", lambda *_, **__: [])


def compiled(subject: Subject, **options: Any) -> TriedChange:
    options = {"now": Counting().now, "time_limit": 1e6, "threads": False, **options}
    [found] = faster_experiments.try_faster(subject, lambda *_: None, **options)
    assert found.name == COMPILE
    return found


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        if x.mean() > 100:
            x = x * 0.5
        return self.second(x)


def test_a_branch_on_a_value_is_listed_with_its_line():
    model = Branching()
    found = compiled(classifier(model, data(), torch.optim.SGD(model.parameters(), lr=0.1)))
    assert found.tried, found.reason
    assert found.same
    [place] = found.breaks
    assert place.reason == "a branch depends on the value of a tensor"
    assert place.code == "if x.mean() > 100:"
    assert place.file == __file__
    assert found.rest["ops"] >= 2


def test_time_is_that_of_compiled_code_once_it_is_compiled(monkeypatch: pytest.MonkeyPatch):
    clock = Ticks()

    class Timed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            if not torch.compiler.is_compiling():
                waited(10.0)
            return self.out(x)

    def waited(seconds: float) -> None:
        clock.take(seconds)

    class Always(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:
            clock.take(10.0)
            return super().step(closure)

    model = Timed()
    found = compiled(classifier(model, data(), Always(model.parameters(), lr=0.1)), now=clock.now)
    assert found.clear
    assert (found.before, found.after) == (pytest.approx(20.0), pytest.approx(10.0))
    assert found.gain == pytest.approx(0.5)
    assert found.helps


def test_containers_of_torch_itself_are_compiled_too(monkeypatch: pytest.MonkeyPatch):
    seen: list[int] = []

    def back_end(graph: Any, inputs: Any) -> Any:
        seen.append(len(list(graph.graph.nodes)))
        return graph.forward

    monkeypatch.setattr(compiled_step, "BACKEND", back_end)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    found = compiled(classifier(model, data()))
    assert found.tried, found.reason
    assert seen


def test_without_a_compiler_it_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiled_step, "_has_compiler", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = compiled(classifier(nn.Linear(4, 4), data()))
    assert not found.tried
    assert "needs a C++ compiler" in found.reason


def test_a_back_end_that_fails_is_an_answer(monkeypatch: pytest.MonkeyPatch):
    def back_end(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(compiled_step, "BACKEND", back_end)
    found = compiled(classifier(nn.Sequential(nn.Linear(4, 4)), data()))
    assert "no such instruction" in found.reason
    assert "\n" not in found.reason


def test_more_to_compile_than_time_is_left_is_not_begun(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiled_step, "SECONDS_OF_OP", 1e9)
    found = compiled(classifier(Branching(), data()))
    assert "--try-limit" in found.reason
    assert found.breaks, "what was learned on the way is kept"


def test_a_model_that_is_called_twice_is_compared_on_all_its_outputs():
    model = Branching()
    x, y = data()
    subject = subject_of(
        model, None, (x, y), step=lambda b: F.cross_entropy(model(b[0]) + model(b[0] + 1), b[1])
    )
    found = compiled(subject)
    assert found.same
    assert set(found.difference) == {"output", "loss", "gradient", "update"}


def test_nothing_of_the_compiler_is_left():
    torch.manual_seed(0)
    model = Branching()
    optimizer = torch.optim.Adam(model.parameters())
    subject = classifier(model, data(), optimizer)
    before, places = everything(model, optimizer), dict(os.environ)
    silenced = logging.root.manager.disable
    assert compiled(subject).tried
    after = everything(model, optimizer)
    assert [name for name in before if not same(before[name], after[name])] == []
    assert "_compiled_call_impl" not in vars(model)
    assert dict(os.environ) == places
    assert logging.root.manager.disable == silenced
    import torch._dynamo.eval_frame as frames
    import torch._inductor.config as settings

    assert frames._stance.stance == "default"
    assert settings.compile_threads != 1 or os.cpu_count() == 1
