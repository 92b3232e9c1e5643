from __future__ import annotations

import linecache

import pytest
import torch
from networks import GPT, Experts, LeNet, ResNet, Siamese
from torch import Tensor, nn

import clew
from clew.records.network import INPUT, Visited


def test_every_op_comes_in_forward_order_with_its_module_and_line() -> None:
    seen: list[Visited] = []
    found = clew.visit(LeNet(), torch.randn(2, 1, 28, 28), visitor=seen.append)
    assert seen == found
    heavy = [(v.name, v.module) for v in seen if v.flops]
    assert heavy == [("convolution", "conv1"), ("convolution", "conv2"), ("addmm", "fc1"), ("addmm", "fc2"),
                     ("addmm", "fc3")]  # fmt: skip
    relu = next(v for v in seen if v.name == "relu")
    assert relu.module == ""  # a functional call belongs to the module whose forward it is in
    assert relu.file is not None
    assert relu.file.endswith("networks.py")
    assert "F.relu(self.conv1(x))" in linecache.getline(relu.file, relu.line or 0)


def test_inputs_outputs_and_arguments_are_described() -> None:
    convolution = clew.visit(nn.Conv2d(3, 8, 3, stride=2), torch.randn(2, 3, 9, 9))[0]
    assert [t.shape for t in convolution.inputs] == [(2, 3, 9, 9), (8, 3, 3, 3), (8,)]
    (out,) = convolution.outputs
    assert (out.shape, out.dtype, out.device, out.requires_grad) == ((2, 8, 4, 4), "float32", "cpu", True)
    assert dict(convolution.arguments)["stride"] == (2, 2)


def test_requires_grad_is_as_autograd_left_it() -> None:
    def f(x: Tensor) -> Tensor:
        kept = x * 2
        return kept.detach() + 1

    x = torch.ones(2, requires_grad=True)
    marks = {v.name: v.outputs[0].requires_grad for v in clew.visit(f, x)}
    assert marks == {"mul": True, "detach": False, "add": False}


def test_what_does_not_feed_the_result_is_told_apart() -> None:
    def f(x: Tensor) -> Tensor:
        wasted = x.exp().sum()  # noqa: F841
        return x.tanh()

    assert {v.name: v.feeds_result for v in clew.visit(f, torch.ones(3))} == {
        "exp": False,
        "sum": False,
        "tanh": True,
    }


def test_a_value_written_in_place_into_a_part_of_the_result_feeds_it() -> None:
    def f(x: Tensor) -> Tensor:
        out = torch.zeros(4, 3)
        out[1:3] = x.sigmoid()
        return out

    sigmoid = next(v for v in clew.visit(f, torch.ones(2, 3), compute=True) if v.name == "sigmoid")
    assert sigmoid.feeds_result


def test_sources_lead_back_to_the_inputs() -> None:
    visited = clew.visit(lambda a, b: (a + b) * a, torch.ones(2), torch.ones(2))
    assert [v.sources for v in visited] == [(INPUT,), (0, INPUT)]


def test_modules_are_visited_with_the_calls_that_feed_them() -> None:
    calls = clew.visit(
        nn.Sequential(nn.Linear(3, 4), nn.Identity(), nn.ReLU()), torch.ones(2, 3), level="module"
    )
    assert [(v.module, v.name, v.sources, v.feeds_result) for v in calls] == [
        ("", "Sequential", (INPUT,), True),
        ("0", "Linear", (INPUT,), True),
        ("1", "Identity", (1,), True),
        ("2", "ReLU", (1,), True),
    ]


def test_a_module_called_twice_is_visited_twice() -> None:
    calls = clew.visit(Siamese(), torch.ones(2, 6), torch.ones(2, 6), level="module")
    assert [(v.module, v.call) for v in calls if v.name == "Linear"] == [("tower.0", 1), ("tower.0", 2)]


def test_a_model_that_decides_on_values_is_run_for_real() -> None:
    x = torch.randn(8, 8)
    names = [v.module for v in clew.visit(Experts(), torch.cat([x, -x]), level="module")]
    assert names == ["", "router", "experts.0", "experts.1"]
    with pytest.raises(RuntimeError, match=r"data-dependent|aten"):
        clew.visit(Experts(), torch.randn(16, 8), compute=False)


def test_an_autograd_graph_is_walked_back_from_its_result() -> None:
    weight = torch.ones(3, 2, requires_grad=True)
    result = (torch.ones(4, 3) @ weight).relu().sum()
    visited = clew.visit(result)
    assert [v.name for v in visited] == ["leaf", "mm", "relu", "sum"]
    assert [v.outputs[0].shape for v in visited] == [(3, 2), (4, 2), (4, 2), ()]
    assert [v.sources for v in visited] == [(INPUT,), (0,), (1,), (2,)]


@pytest.mark.parametrize("compute", [False, True])
def test_ten_thousand_ops_meet_no_recursion_limit(compute: bool) -> None:
    def deep(x: Tensor) -> Tensor:
        for _ in range(10_000):
            x = x + 1
        return x

    assert len(clew.visit(deep, torch.ones(1), compute=compute)) == 10_000
    assert len(clew.visit(deep(torch.ones(1, requires_grad=True)))) == 10_001


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="level is 'op' or 'module'"):
        clew.visit(nn.Linear(1, 1), torch.ones(1, 1), level="layer")
    with pytest.raises(TypeError, match="takes no inputs"):
        clew.visit(torch.ones(1), torch.ones(1))
    with pytest.raises(TypeError, match="not int"):
        clew.visit(3)


def test_keyword_inputs_reach_the_forward() -> None:
    visited = clew.visit(GPT(layers=1), keywords={"ids": torch.zeros(2, 5, dtype=torch.int64)})
    assert visited[-1].outputs[0].shape == (2, 5, 100)


def test_the_same_ops_are_seen_with_and_without_computing() -> None:
    model, x = ResNet(), torch.randn(2, 3, 16, 16)
    fake, real = clew.visit(model, x, compute=False), clew.visit(model, x, compute=True)
    assert [(v.name, v.module, v.flops) for v in fake if v.flops] == [
        (v.name, v.module, v.flops) for v in real if v.flops
    ]
    assert [v.feeds_result for v in fake if v.flops] == [v.feeds_result for v in real if v.flops]
