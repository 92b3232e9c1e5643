"""The recorder of ops: what it records for each op and each module."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

from clew.labs.snapshot.op_recorder import ModulePaths, OpCall, OpRecorder


class Noting(OpRecorder):
    """Writes down all that it is told."""

    def __init__(self) -> None:
        self.written: list[int] = []
        super().__init__(lambda tensor: self.written.append(id(tensor)))
        self.ops: list[tuple[str, list[str], int, int]] = []
        self.failed: list[str] = []
        self.calls: list[str] = []

    def after_op(self, op: OpCall) -> None:
        running = [type(module).__name__ for module in self.modules]
        self.ops.append((op.func._schema.name[6:], running, len(op.inputs), len(op.outputs)))

    def op_failed(self, op: OpCall) -> None:
        self.failed.append(op.func._schema.name[6:])

    def entered(self, module: nn.Module, args: Any) -> None:
        self.calls.append(f"> {type(module).__name__}")

    def left(self, module: nn.Module, args: Any, output: Any) -> None:
        self.calls.append(f"< {type(module).__name__}")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.act = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(x) * 2


def hooks_left() -> list[int]:
    names = ("pre_hooks", "hooks", "hooks_always_called", "hooks_with_kwargs")
    return [len(getattr(global_hooks, f"_global_forward_{name}", ())) for name in names]


def test_ops_come_in_order_with_the_modules_that_run() -> None:
    before = hooks_left()
    with Noting() as noted:
        Net()(torch.ones(2))
    names = [(op, running) for op, running, *_ in noted.ops]
    assert ("relu", ["Net", "ReLU"]) in names
    assert ("mul", ["Net"]) in names
    assert noted.calls == ["> Net", "> ReLU", "< ReLU", "< Net"]
    assert hooks_left() == before


def test_inputs_outputs_and_writes_are_told() -> None:
    one, two = torch.ones(2), torch.ones(2)
    with Noting() as noted:
        torch.add(one, two)
        one.add_(two)
    assert [(op, reads, gives) for op, _, reads, gives in noted.ops] == [("add", 2, 1), ("add_", 2, 1)]
    assert noted.written == [id(one)]


def test_running_statistics_are_writes_though_no_schema_says_so() -> None:
    norm = nn.BatchNorm1d(2)
    with Noting() as noted:
        norm(torch.rand(4, 2))
    assert {id(norm.running_mean), id(norm.running_var)} <= set(noted.written)


def test_a_module_that_raised_is_no_longer_running() -> None:
    class Broken(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x @ torch.ones(5, 5)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Broken()

        def forward(self, x: Tensor) -> Tensor:
            try:
                return self.inner(x)
            except RuntimeError:
                return x + 1

    with Noting() as noted:
        Outer()(torch.ones(2, 2))
    assert noted.failed == ["mm"]
    assert noted.ops[-1][:2] == ("add", ["Outer"])


def test_hooks_are_gone_after_an_error() -> None:
    before = hooks_left()
    with pytest.raises(RuntimeError, match="mat1"), Noting():
        torch.ones(2, 2) @ torch.ones(3, 3)
    assert hooks_left() == before


def test_composite_ops_are_taken_apart_under_inference_mode_too() -> None:
    layer = nn.Linear(2, 2)
    with Noting() as noted, torch.inference_mode():
        layer(torch.ones(1, 2))
    assert "addmm" in [op for op, *_ in noted.ops]
    assert noted.calls == ["> Linear", "< Linear"]


def test_a_module_without_a_name_counts_as_part_of_the_one_around_it() -> None:
    net = Net()
    paths = ModulePaths({"net": net})
    assert paths.of(net.act) == ("net", "act")
    assert paths.innermost([net, nn.ReLU()]) == ("net", "")
    assert paths.innermost([nn.ReLU()]) == (None, None)
