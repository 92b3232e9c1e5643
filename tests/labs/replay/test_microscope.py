"""The microscope names the operation that makes the first non-finite value, and blames no mask."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clew.labs.replay.culprits import find_suspects
from clew.labs.replay.microscope import Microscope
from clew.labs.snapshot.nonfinite_values import Culprit

INF = math.inf


def blame(step: Callable[[Tensor], Tensor], x: Tensor, **roots: nn.Module) -> Culprit | None:
    """Run forward and backward of a step and name what made the loss, else the gradient, bad."""
    scope = Microscope(roots)
    x = x.clone().requires_grad_(x.is_floating_point())
    with scope:
        loss = step(x)
        leaves = [x, *(p for root in roots.values() for p in root.parameters())]
        found = find_suspects(scope, [loss], len(x))
        if not found:
            gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
            found = find_suspects(scope, [g for g in gradients if g is not None], len(x))
    return found[0].culprit if found else None


def log_of_zero(x):
    return (x * 0).log().sum()


def log_of_negative(x):
    return torch.log(x - 10).mean()


def sqrt_of_negative(x):
    return torch.sqrt(x - 10).mean()


def zero_by_zero(x):
    return ((x - x) / (x - x).sum()).mean()


def one_by_zero(x):
    return (x / (x - x)).mean()


def reciprocal(x):
    return (x * 0).reciprocal().sum()


def big_exponential(x):
    return (x * 100).exp().sum()


def half_cast(x):
    return (x * 1e5).half().float().sum()


def bfloat_cast(x):
    return (x.double() * 1e200).bfloat16().float().sum()


def power(x):
    return ((x * 0) ** -1.0).sum()


def fractional_power(x):
    return ((x - 10) ** 0.5).sum()


def masked_row(x):
    return F.softmax(x.masked_fill(torch.ones(len(x), 1, dtype=torch.bool), -INF), -1).sum()


def zero_times_infinity(x):
    return (torch.full((4, 3), -INF) * (x * 0)).sum()


def infinity_minus_infinity(x):
    return (x.masked_fill(x > 0, INF) - x.masked_fill(x > 0, INF)).sum()


def one_element_variance(x):
    return x[:1].var(0).sum()


def mean_of_nothing(x):
    return x[x > 100].mean()


def ignored_targets(x):
    return F.cross_entropy(x, torch.full((4,), -100))


def impossible_class(x):
    return F.cross_entropy(
        x.masked_fill(torch.tensor([True, False, False]), -INF), torch.tensor([1, 0, 2, 1])
    )


def outside_acos(x):
    return torch.acos(x + 5).sum()


def matmul_overflow(x):
    return ((x * 1e30) @ (x.T * 1e30)).sum()


FORWARD = [
    (log_of_zero, "log", "logarithm of 0"),
    (log_of_negative, "log", "negative number"),
    (sqrt_of_negative, "sqrt", "negative number"),
    (zero_by_zero, "div", "0 divided by 0"),
    (one_by_zero, "div", "division by 0"),
    (reciprocal, "reciprocal", "one over 0"),
    (big_exponential, "exp", "above 88.7"),
    (half_cast, "cast", "float16, whose largest value is 65504"),
    (bfloat_cast, "cast", "bfloat16"),
    (power, "pow", "negative power"),
    (fractional_power, "pow", "fractional power"),
    (masked_row, "softmax", "all of it is masked"),
    (zero_times_infinity, "mul", "0 times infinity"),
    (infinity_minus_infinity, "sub", "infinity minus infinity"),
    (one_element_variance, "var", "single element"),
    (mean_of_nothing, "mean", "no elements"),
    (ignored_targets, "nll_loss", "ignore_index"),
    (impossible_class, "nll_loss", "probability of 0"),
    (outside_acos, "acos", "undefined"),
    (matmul_overflow, "matmul", "more than float32 can hold"),
]


@pytest.mark.filterwarnings("ignore:var")  # torch itself warns of one of them
@pytest.mark.parametrize(("step", "op", "says"), FORWARD, ids=lambda value: getattr(value, "__name__", ""))
def test_a_forward_producer_is_named_with_its_line_and_reason(step, op, says):
    found = blame(step, torch.linspace(1, 2, 12).reshape(4, 3))
    assert found is not None
    assert (found.phase, found.op) == ("forward", op)
    assert says in found.why
    assert found.code == linecache.getline(__file__, step.__code__.co_firstlineno + 1).strip()
    assert found.fix


def sqrt_at_zero(x):
    return torch.sqrt((x - x).pow(2).sum(1)).sum()


def root_by_power(x):
    return ((x - x).pow(2).sum(1) ** 0.5).sum()


def hidden_log(x):
    return torch.where(x > 100, torch.log(x - x), x).sum()


def acos_at_one(x):
    return torch.acos(x / x).sum()


BACKWARD = [
    (sqrt_at_zero, "sqrt", "square root at 0"),
    (root_by_power, "pow", "power below 1"),
    (hidden_log, "log", "derivative of log at 0"),
    (acos_at_one, "acos", "at the edge"),
]


@pytest.mark.parametrize(("step", "op", "says"), BACKWARD, ids=lambda value: getattr(value, "__name__", ""))
def test_a_backward_producer_is_named_with_the_line_of_its_forward(step, op, says):
    found = blame(step, torch.linspace(1, 2, 12).reshape(4, 3))
    assert found is not None
    assert (found.phase, found.op) == ("backward", op)
    assert says in found.why
    assert found.code == linecache.getline(__file__, step.__code__.co_firstlineno + 1).strip()


def test_a_value_that_where_hides_is_told_from_one_that_reaches_the_loss():
    found = blame(hidden_log, torch.linspace(1, 2, 12).reshape(4, 3))
    assert found is not None
    assert any("never reached the loss" in note for note in found.notes)


def test_a_mask_of_minus_infinity_that_softmax_absorbs_is_not_blamed():
    def step(x):
        mask = torch.triu(torch.full((3, 3), -INF), 1)
        attention = torch.softmax(x[:3] + mask, -1)
        return torch.log(attention.sum() * 0)

    found = blame(step, torch.ones(4, 3))
    assert found is not None
    assert found.op == "log"


def test_healthy_masked_attention_makes_no_producer():
    def step(x):
        mask = torch.ones(4, 4, dtype=torch.bool).tril()
        out = F.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=mask)
        return out.sum() + torch.softmax(x.masked_fill(x > 1.9, -INF), -1).sum()

    assert blame(step, torch.linspace(1, 2, 12).reshape(4, 3)) is None


def test_the_infinity_that_came_first_is_blamed_not_the_nan_it_turned_into():
    def step(x):
        big = torch.exp(x * 100)
        return (big - big).sum()

    found = blame(step, torch.ones(4, 3))
    assert found is not None
    assert (found.op, found.result) == ("exp", "inf")


def test_the_responsible_elements_and_samples_are_listed():
    x = torch.ones(4, 3)
    x[2, 1] = 0.0
    found = blame(lambda x: torch.log(x).sum(), x)
    assert found is not None
    assert (found.elements, found.element_values, found.samples) == (((2, 1),), (0.0,), (2,))
    (stats,) = found.inputs
    assert (stats.shape, stats.dtype, stats.min, stats.max) == ((4, 3), "float32", 0.0, 1.0)


def test_a_value_overwritten_in_place_is_not_followed_any_further():
    def step(x):
        y = torch.log(x * 0)
        y = y.masked_fill(torch.ones(4, 3, dtype=torch.bool), 1.0)
        z = torch.zeros(4, 3)
        z.copy_(torch.log(x.detach() * 0))
        z[:] = 1.0
        return (y * z).sum()

    scope = Microscope()
    with scope:
        loss = step(torch.ones(4, 3))
    assert not find_suspects(scope, [loss])
    assert [e.spot.op for e in scope.events] == ["log", "log"]


def test_an_in_place_operation_is_shown_with_what_it_was_given():
    found = blame(lambda x: (x * 0).log_().sum(), torch.ones(4, 3))
    assert found is not None
    assert (found.op, found.inputs[0].max, found.why) == ("log", 0.0, "the logarithm of 0 is -infinity")


def test_uninitialised_memory_is_no_event():
    scope = Microscope()
    with scope:
        memory = torch.empty(1000)
        memory.fill_(1.0)
        assert math.isfinite(float(memory.sum()))
    assert scope.events == []


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(3, 3)

    def forward(self, h):
        return torch.exp(h.abs() * 3 + 1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell()

    def forward(self, h):
        for _ in range(5):
            h = self.cell(h)
        return h.sum()


def test_the_call_of_a_recurrent_line_is_counted_and_its_module_named():
    model = Recurrent()
    found = blame(model, torch.zeros(2, 3), rnn=model)
    assert found is not None
    assert (found.op, found.root, found.module, found.call) == ("exp", "rnn", "cell", (3, 5))


class Root(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient / (x * 0)  # planted


def test_a_custom_function_is_named_by_its_class_and_the_line_in_its_backward():
    found = blame(lambda x: Root.apply(x).sum(), torch.ones(4, 3))
    assert found is not None
    assert (found.phase, found.op) == ("backward", "Root")
    assert "custom function Root" in found.why
    assert found.code is not None
    assert "planted" in found.code


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Rooted()

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=False).sum()


class Rooted(nn.Module):
    def forward(self, x):
        return torch.sqrt((x - x).pow(2))


def test_a_checkpointed_part_is_named_by_its_own_line():
    model = Checkpointed()
    found = blame(model, torch.ones(4, 3), model=model)
    assert found is not None
    assert (found.phase, found.op, found.module, found.call) == ("backward", "sqrt", "inner", None)
    assert found.code == "return torch.sqrt((x - x).pow(2))"


def test_a_parameter_that_is_already_bad_is_named():
    model = nn.Linear(3, 1)
    with torch.no_grad():
        model.weight[0, 1] = math.nan
    found = blame(lambda x: model(x).sum(), torch.ones(4, 3), net=model)
    assert found is not None
    assert (found.phase, found.op, found.elements) == ("parameter", "weight", ((0, 1),))


def test_the_hooks_of_the_microscope_come_off():
    from torch.nn.modules import module as hooks

    before = [len(d) for d in (hooks._global_forward_hooks, hooks._global_forward_pre_hooks)]
    with pytest.raises(ZeroDivisionError), Microscope():
        raise ZeroDivisionError
    after = [len(d) for d in (hooks._global_forward_hooks, hooks._global_forward_pre_hooks)]
    assert before == after == [0, 0]
    assert not hooks._global_forward_hooks_always_called


def test_where_two_bad_values_meet_the_first_is_blamed_and_the_other_told():
    def step(x):
        first = torch.log(x * 0)
        second = torch.sqrt(x - 10)
        return torch.cat([first, second]).sum()

    found = blame(step, torch.ones(4, 3))
    assert found is not None
    assert found.op == "log"
    assert any("sqrt on line" in note for note in found.notes)
