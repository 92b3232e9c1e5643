"""What time is attributed to: forward ops, backward nodes, optimizers of networks with known answers."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from clew.hooks.collect_layers.trained_models import ModelBook
from clew.labs.profiler.torch_trace.kineto_window import KinetoWindow, ProgramProfiler, TraceDetail
from clew.labs.profiler.window_contents import WindowReading, read
from clew.records.step_costs import PARTS, ModuleCost, OpCost

torch.manual_seed(0)


def record(step: Callable[[], object], steps: int = 3, book: ModelBook | None = None) -> TraceDetail:
    """So many steps in a window, after one outside it."""
    models = book or ModelBook()
    step()
    window = KinetoWindow(models, models.root_of, ProgramProfiler())
    window.start(1)
    for number in range(steps):
        step()
        window.mark(number + 2)
    detail = window.stop()
    assert detail is not None
    return detail


def profiled(step: Callable[[], object], steps: int = 3) -> WindowReading:
    return read([record(step, steps)])


def trainer(model: nn.Module, *inputs: Tensor) -> Callable[[], None]:
    """The plainest step there is."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        model(*inputs).square().mean().backward()
        optimizer.step()

    return step


def module(reading: WindowReading, name: str) -> ModuleCost:
    return next(cost for cost in reading.modules if cost.module == name)


def ops(reading: WindowReading, name: str) -> list[OpCost]:
    return [op for op in reading.ops if op.module == name]


def op(reading: WindowReading, module_name: str, name: str) -> OpCost:
    return next(found for found in ops(reading, module_name) if found.op == name)


class Burner(nn.Module):
    """So many products of matrices, and one weight."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.weight = nn.Parameter(torch.eye(96))

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.times):
            x = x @ self.weight
        return x


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.few = Burner(1)
        self.many = Burner(12)

    def forward(self, x: Tensor) -> Tensor:
        return self.many(self.few(x))


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        for _ in range(20):
            gradient = gradient.cos()
        return gradient


class Doubling(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        doubled: Tensor = Double.apply(x)
        return doubled


@pytest.fixture(scope="module")
def two() -> WindowReading:
    return profiled(trainer(Two(), torch.ones(96, 96)))


def test_ops_belong_to_the_innermost_module_that_called_them(two: WindowReading) -> None:
    assert op(two, "few", "aten::matmul").calls == 1
    assert op(two, "many", "aten::matmul").calls == 12
    assert not ops(two, "")


def test_the_backward_of_an_op_belongs_to_the_module_of_its_forward(two: WindowReading) -> None:
    # One product of the few needs no gradient for its input: 1 product, and 2 for each of the 12.
    one = 2.0 * 96**3
    assert op(two, "few", "aten::matmul").flops == pytest.approx(one + one)
    assert op(two, "many", "aten::matmul").flops == pytest.approx(12 * (one + 2 * one))
    assert op(two, "few", "aten::matmul").backward > 0
    assert module(two, "many").self_backward > module(two, "few").self_backward


def test_what_is_inside_a_module_is_in_its_total_but_not_its_own(two: WindowReading) -> None:
    root, few, many = (module(two, name) for name in ("", "few", "many"))
    assert root.forward >= few.forward + many.forward
    assert root.backward == pytest.approx(few.backward + many.backward)
    assert root.self_backward == 0
    assert root.self_forward == pytest.approx(root.forward - few.forward - many.forward)
    assert root.flops == pytest.approx(few.flops + many.flops)


def test_modules_optimizer_data_and_what_is_left_are_the_step(two: WindowReading) -> None:
    inside = sum(cost.self_forward + cost.self_backward for cost in two.modules)
    parts = {name: mean(seconds) for name, seconds in two.by_step.items()}
    named = sum(parts.get(part, 0.0) for part in ("optimizer", "data"))
    assert two.left > 0
    assert inside + named + two.left == pytest.approx(two.step)
    assert sum(parts.values()) == pytest.approx(two.step, rel=0.01)
    assert sum(two.by_step["rest"]) >= 0


def test_the_flame_adds_up_to_the_step_and_goes_from_part_to_module_to_op(two: WindowReading) -> None:
    flame = two.flame
    assert flame is not None
    assert flame.value == pytest.approx(two.step, rel=0.01)
    assert {child.name for child in flame.children} <= set(PARTS)
    forward = next(child for child in flame.children if child.name == "forward")
    model = forward.children[0]
    assert [child.name for child in model.children] == ["few (Burner)", "many (Burner)"]
    assert [child.name for child in model.children[0].children] == ["aten::matmul"]
    for _, frame in flame.walk():
        assert frame.value == pytest.approx(frame.self + sum(child.value for child in frame.children))


def test_the_calls_flops_and_bytes_of_an_op_are_those_of_its_shapes(two: WindowReading) -> None:
    found = op(two, "few", "aten::matmul")
    assert found.shapes == "[96, 96] [96, 96]"
    # Forward: two matrices read and one written; backward of the weight: the same.
    assert found.moved == pytest.approx(2 * 3 * 96 * 96 * 4, rel=0.01)


def test_a_module_used_twice_has_both_calls_with_their_backward() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = Burner(1)
            self.between = nn.Tanh()

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(self.between(self.layer(x)))

    reading = profiled(trainer(Shared(), torch.ones(96, 96)))
    layer, one = module(reading, "layer"), 2.0 * 96**3
    assert layer.calls == 2
    assert layer.flops == pytest.approx(one * (2 + 1 + 2))  # the first one's input needs no gradient
    assert op(reading, "between", "aten::tanh").backward > 0


def test_a_weight_that_two_modules_share_is_accumulated_where_its_gradient_was_computed() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Burner(1), Burner(3)
            self.second.weight = self.first.weight

        def forward(self, x: Tensor) -> Tensor:
            return self.second(self.first(x))

    reading = profiled(trainer(Tied(), torch.ones(96, 96)))
    one = 2.0 * 96**3
    assert module(reading, "first").flops == pytest.approx(one * 2)
    assert module(reading, "second").flops == pytest.approx(3 * one * 3)


def test_a_custom_functions_backward_belongs_to_the_module_that_applied_it() -> None:
    model = nn.Sequential(Burner(1), Doubling(), Burner(1))
    reading = profiled(trainer(model, torch.ones(96, 96)))
    doubling = op(reading, "1", "Double")
    assert doubling.calls == 1
    assert doubling.backward > 0
    assert module(reading, "1").self_backward == pytest.approx(doubling.backward)
    assert "DoubleBackward" in {frame.name for _, frame in reading.flame.walk()}  # type: ignore[union-attr]


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_forward_that_runs_again_in_the_backward_is_the_modules_backward(reentrant: bool) -> None:
    class Saving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.inner = Burner(1), Burner(5)

        def forward(self, x: Tensor) -> Tensor:
            again: Tensor = checkpoint(self.inner, self.before(x), use_reentrant=reentrant)
            return again

    reading = profiled(trainer(Saving(), torch.ones(96, 96)))
    inner, one = module(reading, "inner"), 2.0 * 96**3
    assert inner.flops == pytest.approx(5 * one * (1 + 1 + 2))
    assert inner.calls == 1  # in the forward
    assert inner.self_backward > 0


def test_two_backwards_through_one_graph_are_both_counted() -> None:
    layer = Burner(2)
    model = nn.Sequential(layer)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def step() -> None:
        optimizer.zero_grad()
        out = model(torch.ones(96, 96))
        out.sum().backward(retain_graph=True)
        out.square().sum().backward()
        optimizer.step()

    one = 2.0 * 96**3
    assert module(profiled(step), "0").flops == pytest.approx(one * (2 + 2 * 3))


def test_the_names_of_modules_have_their_models_name_where_there_are_several() -> None:
    generator, judge = nn.Sequential(Burner(1)), nn.Sequential(Burner(2))
    optimizer = torch.optim.SGD([*generator.parameters(), *judge.parameters()], lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        judge(generator(torch.ones(96, 96))).mean().backward()
        optimizer.step()

    names = {cost.module for cost in profiled(step).modules}
    assert {"generator", "generator.0", "judge", "judge.0"} <= names


def test_a_loss_module_is_no_part_of_the_forward_but_has_its_own_row() -> None:
    model, criterion = nn.Sequential(Burner(1)), nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    target = torch.zeros(96, 96)

    def step() -> None:
        optimizer.zero_grad()
        criterion(model(torch.ones(96, 96)), target).backward()
        optimizer.step()

    reading = profiled(step)
    loss = module(reading, "criterion")
    assert loss.type == "MSELoss"
    assert loss.backward > 0
    assert mean(reading.by_step["forward"]) == pytest.approx(module(reading, "").forward)


def test_an_evaluation_in_a_step_leaves_that_step_out() -> None:
    model = nn.Sequential(Burner(1))
    train = trainer(model, torch.ones(96, 96))
    steps = iter(range(100))

    def step() -> None:
        train()
        if next(steps) == 2:  # the first is outside the window
            with torch.no_grad():
                for _ in range(50):
                    model(torch.ones(96, 96))

    reading = profiled(step, steps=4)
    assert 2 not in reading.steps
    assert module(reading, "0").calls == 1


def test_a_block_without_training_is_read_as_forward() -> None:
    model = nn.Sequential(Burner(2))

    def step() -> None:
        with torch.no_grad():
            model(torch.ones(96, 96))

    reading = profiled(step)
    assert module(reading, "0").calls == 1
    assert mean(reading.by_step["forward"]) > 0


def test_a_closure_run_within_the_optimizers_step_is_forward_and_backward() -> None:
    model = nn.Sequential(Burner(1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1e-6, max_iter=3)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = model(torch.ones(96, 96)).square().mean()
        loss.backward()
        return loss

    reading = profiled(lambda: optimizer.step(closure))
    assert module(reading, "0").calls == 3
    assert {"forward", "backward", "optimizer"} <= set(reading.by_step)


def test_what_the_loader_does_in_this_process_is_data() -> None:
    class Slow(torch.utils.data.Dataset[Tensor]):
        def __len__(self) -> int:
            return 8

        def __getitem__(self, index: int) -> Tensor:
            return torch.ones(96, 96).cos().sin()[index]

    model = nn.Sequential(Burner(1))
    loader = torch.utils.data.DataLoader(Slow(), batch_size=4)

    def train() -> None:
        for batch in loader:
            trainer(model, batch)()

    reading = profiled(train)
    assert mean(reading.by_step["data"]) > 0
    assert reading.flame is not None
    data = next(child for child in reading.flame.children if child.name == "data")
    assert {"aten::cos", "aten::sin"} <= {frame.name for _, frame in data.walk()}


def test_a_model_of_bare_functions_has_its_ops_outside_modules() -> None:
    weight = torch.eye(96, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        (torch.ones(96, 96) @ weight).square().mean().backward()
        optimizer.step()

    reading = profiled(step)
    outside = op(reading, "(outside modules)", "aten::matmul")
    assert outside.backward > 0
    assert outside.calls == 1
    assert module(reading, "(outside modules)").flops == pytest.approx(2 * 2.0 * 96**3, rel=0.01)


def test_the_timeline_is_one_step_with_modules_and_ops(two: WindowReading) -> None:
    names = {entry["name"] for entry in two.timeline}
    assert {"Two", "Burner", "aten::matmul", "backward", "optimizer"} <= names
    assert all(0 <= entry["start"] <= two.step * 3 for entry in two.timeline)
    assert {entry["module"] for entry in two.timeline} >= {"", "few", "many", None}


def test_windows_are_added_up() -> None:
    train = trainer(Two(), torch.ones(96, 96))
    reading = read([record(train, 2), record(train, 3)])
    assert 3 <= len(reading.durations) <= 5  # less those that the machine held up
    assert module(reading, "many").calls == 1
    assert module(reading, "many").steps == len(reading.durations)


def test_a_range_that_is_left_after_its_window_does_no_harm_to_the_next() -> None:
    """Torch would write into the memory of the profiler that has gone."""
    model = nn.Sequential(Burner(1))
    train = trainer(model, torch.ones(96, 96))
    book = ModelBook()

    def window() -> KinetoWindow:
        made = KinetoWindow(book, book.root_of, ProgramProfiler())
        made.start(0)
        return made

    train()
    first = window()
    outer = torch.profiler.record_function("an epoch").__enter__()
    train()
    first.mark(1)
    assert first.stop() is not None
    second = window()
    outer.__exit__(None, None, None)
    train()
    second.mark(1)
    detail = second.stop()
    assert detail is not None
    assert "an epoch" not in {event.name() for event in detail.events()}
    assert outer.run_callbacks_on_exit is False
