"""`clew.trace_numerics`: tracing on purpose."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch import nn

import clew


class Rooted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.edge = Edge()

    def forward(self, x):
        return self.edge(self.inner(x))


class Edge(nn.Module):
    def forward(self, x):
        return torch.sqrt(x - x)


class Exponential(nn.Module):
    def forward(self, x):
        return torch.exp(x * 0 + 100)


@pytest.mark.parametrize("level", ["op", "layer"])
def test_a_backward_that_breaks_is_reported_and_raised(level):
    model = Rooted()
    with clew.trace_numerics(model, level=level) as trace:
        model(torch.randn(4, 3)).sum().backward()
    first = trace.report().culprits[0]
    assert (first.phase, first.module) == ("backward", "edge")
    assert first.op == ("sqrt" if level == "op" else "Edge")
    with pytest.raises(clew.NonFiniteError, match=re.escape(str(trace.report()))):
        trace.check()


@pytest.mark.parametrize("level", ["op", "layer"])
def test_a_model_that_is_not_named_is_found(level):
    model = nn.Sequential(nn.Linear(3, 3), Exponential())
    with clew.trace_numerics(level=level) as trace:
        model(torch.randn(4, 3))
    (found,) = trace.report().culprits
    assert (found.phase, found.root, found.module, found.result) == ("forward", "Sequential", "1", "inf")
    assert found.samples == (0, 1, 2, 3)


@pytest.mark.parametrize("level", ["op", "layer"])
def test_healthy_training_is_silent(level):
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    with clew.trace_numerics(model, level=level) as trace:
        nn.functional.cross_entropy(model(torch.randn(8, 3)), torch.randint(2, (8,))).backward()
    trace.check()
    assert not trace.report()
    assert str(trace.report()) == "every traced value is finite"


@pytest.mark.parametrize("level", ["op", "layer"])
def test_a_bad_input_is_not_passed_over(level):
    model = nn.Linear(3, 2)
    x = torch.ones(4, 3)
    x[1, 2] = math.nan
    with clew.trace_numerics(model, level=level) as trace:
        model(x)
    (found,) = trace.report().culprits
    assert found.elements == ((1, 2),)


def test_only_what_was_asked_for_is_reported():
    def made(**options):
        with clew.trace_numerics(**options) as trace:
            torch.exp(torch.full((2,), 100.0))
            torch.log(torch.full((2,), -1.0))
        return [culprit.op for culprit in trace.report().culprits]

    assert made() == ["exp", "log"]
    assert made(inf=False) == ["log"]
    assert made(nan=False) == ["exp"]
    assert made(allow=["exp"]) == ["log"]
    assert made(allow="exp") == ["log"]


def test_a_module_and_a_line_can_be_allowed():
    model = Rooted()

    def found(allow):
        model.zero_grad()
        with clew.trace_numerics(model, allow=allow) as trace:
            model(torch.randn(4, 3)).sum().backward()
        return trace.report()

    line = f"test_trace_numerics.py:{Edge.forward.__code__.co_firstlineno + 1}"
    assert found(["inner"])
    assert not found(["edge"])
    assert not found([line])


def test_a_wrong_level_or_model_is_refused():
    with pytest.raises(ValueError, match="'op' or 'layer'"):
        clew.trace_numerics(level="tensor")
    with pytest.raises(TypeError, match=r"torch\.nn\.Module, not str"):
        clew.trace_numerics("model")


def test_tracing_changes_no_gradient_and_no_random_number():
    def gradients(trace):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
        with trace:
            model(torch.randn(8, 3)).pow(2).sum().backward()
        return [p.grad for p in model.parameters()], torch.rand(2)

    plain = gradients(torch.enable_grad())
    for level in ("op", "layer"):
        traced = gradients(clew.trace_numerics(level=level))
        assert all(torch.equal(a, b) for a, b in zip(plain[0], traced[0], strict=True))
        assert torch.equal(plain[1], traced[1])


class Own(nn.Module):
    """A module with a part, whose own code is at fault; where it is, `of` says."""

    def __init__(self, of: str) -> None:
        super().__init__()
        self.of = of
        self.part = nn.Linear(3, 3)

    def forward(self, x):
        if self.of == "before":
            x = torch.sqrt(x - x - 1)
        elif self.of == "gradient before":
            x = torch.sqrt(x - x)
        x = self.part(x)
        if self.of == "after":
            x = torch.log(x - x)
        elif self.of == "gradient after":
            x = torch.sqrt(x - x)
        elif self.of == "hidden":
            x = torch.where(x > 100, torch.full_like(x, math.inf), x)
        return x


def layers_of(*modules):
    model = nn.Sequential(nn.Linear(3, 3), *modules, nn.Linear(3, 2))
    with clew.trace_numerics(model, level="layer") as trace:
        model(torch.randn(4, 3)).sum().backward()
    return trace


@pytest.mark.parametrize(
    ("of", "phase"),
    [
        ("before", "forward"),
        ("after", "forward"),
        ("gradient before", "backward"),
        ("gradient after", "backward"),
    ],
)
def test_a_container_whose_own_code_makes_it_is_named(of, phase):
    trace = layers_of(nn.Sequential(Own(of)))
    with pytest.raises(clew.NonFiniteError):
        trace.check()
    first = trace.report().culprits[0]
    assert (first.phase, first.op, first.module) == (phase, "Own", "1.0")


def test_what_a_container_hands_to_a_part_is_told():
    found = layers_of(Own("before")).report().culprits[0]
    assert found.why == "finite values go into this Own, but its gradient for 1.part is non-finite"


def test_a_container_around_a_faulty_part_is_not_named():
    for faulty in (Exponential(), Edge()):
        found = layers_of(nn.Sequential(nn.Sequential(faulty), nn.Tanh())).report().culprits
        assert {c.op for c in found} == {type(faulty).__name__}


def test_a_sound_container_is_silent():
    layers_of(Own("nothing"), Own("hidden"), nn.TransformerEncoderLayer(3, 1, 4)).check()


def test_a_mask_that_is_handed_down_and_absorbed_is_silent():
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.choose = nn.Softmax(dim=1)

        def forward(self, x):
            return self.choose(x.masked_fill(torch.tensor([True, False, False]), -math.inf))

    layers_of(Masked()).check()


def test_one_operation_that_fails_in_both_directions_is_not_said_to_be_hidden():
    with clew.trace_numerics() as trace:
        torch.log(torch.zeros(3, requires_grad=True)).sum().backward()
    forward, backward = trace.report().culprits
    assert (forward.phase, backward.phase) == ("forward", "backward")
    assert not forward.notes
    assert not backward.notes


def test_the_hooks_of_the_coarse_lens_come_off():
    hooks = torch.nn.modules.module
    dicts = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_forward_hooks_always_called")
    dicts += ("_global_forward_hooks_with_kwargs",)
    before = {name: len(getattr(hooks, name, {})) for name in dicts}
    layers_of(Own("after"))
    assert {name: len(getattr(hooks, name, {})) for name in dicts} == before
