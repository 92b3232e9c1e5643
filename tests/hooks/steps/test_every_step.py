"""`every_step`: every layer, gradient and weight on every step, in full on some, and nothing else between."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import clew
from clew.hooks.collect_layers import parameter_stats, step_rows
from clew.hooks.steps.sampling_budget import DENSE_STEPS, FULL_EVERY
from clew.measure import deferred_values
from clew.store.read.run_reader import open_run

STEPS = DENSE_STEPS + 3 * FULL_EVERY


class Net(nn.Module):
    """Layers, a container, an activation as function, a passive layer, and one that is called twice."""

    def __init__(self, relu: Callable[[Tensor], Tensor] = F.relu) -> None:
        super().__init__()
        self.relu = relu
        self.first = nn.Linear(6, 8)
        self.body = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.0))
        self.last = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.first(x))
        return self.last(self.body(self.body(x)))


def trained(
    folder: Path, every_step: bool = True, relu: Any = F.relu
) -> tuple[Any, list[dict[str, Any]], nn.Module]:
    torch.manual_seed(0)
    model, seen = Net(relu), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept: dict[str, Tensor] = {}
    with clew.attach(run_root=folder, every_step=every_step, quiet=True) as session:
        for _ in range(STEPS):
            x, y = torch.randn(16, 6), torch.randint(3, (16,))
            optimizer.zero_grad()
            out = model(x)
            F.cross_entropy(out, y).backward()
            kept = {
                "activation": out.detach().clone(),
                "weight": model.last.weight.detach().clone(),
                "gradient": model.last.weight.grad.clone(),
            }
            seen.append(kept)
            optimizer.step()
    return open_run(session.path).data, seen, model


def series(data: Any, signal: str, module: str, op: str | None = None) -> tuple[list[int], np.ndarray]:
    for site, steps, values in data.series(signal):
        if site.module == module and site.op == op and site.param in (None, "weight"):
            return steps.tolist(), values
    raise AssertionError(f"no {signal} of {module}")


# What is called by its name in `torch`, directly or not, and what only a mode sees.
BOTH_WAYS = pytest.mark.parametrize("relu", [F.relu, Tensor.relu], ids=["function", "method"])


@pytest.fixture(scope="module", params=[F.relu, Tensor.relu, torch.relu], ids=["function", "method", "held"])
def run(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Any], nn.Module]:
    return trained(tmp_path_factory.mktemp("runs"), relu=request.param)


@pytest.mark.parametrize("what", ["activation", "weight", "gradient"])
def test_every_step_has_the_statistics_of_its_own_tensors(run: Any, what: str) -> None:
    data, seen, _ = run
    for name, of in (("mean", Tensor.mean), ("max", Tensor.amax), ("norm", Tensor.norm)):
        steps, values = series(data, f"{what}.{name}", "last")
        assert steps == list(range(STEPS))
        np.testing.assert_allclose(values, [float(of(s[what])) for s in seen], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("module", "op"), [("first", None), ("body.0", None), ("first", "relu"), ("body.1", "tanh")]
)
def test_all_layers_and_activation_functions_are_there_on_every_step(
    run: Any, module: str, op: str | None
) -> None:
    assert series(run[0], "activation.std", module, op)[0] == list(range(STEPS))


def test_dead_and_saturated_units_are_there_on_every_step_too(run: Any) -> None:
    steps, values = series(run[0], "activation.dead_fraction", "first", "relu")
    assert steps == list(range(STEPS))
    assert not np.isnan(values).any()


@pytest.mark.parametrize("signal", ["update.ratio", "weight.log2hist.00"])
def test_what_changes_slowly_is_taken_on_some(run: Any, signal: str) -> None:
    full = [*range(DENSE_STEPS), *(s for s in range(DENSE_STEPS, STEPS) if s % FULL_EVERY == 0)]
    assert series(run[0], signal, "last")[0] == full


def test_training_is_bit_identical(run: Any, tmp_path: Path) -> None:
    _, _, plain = trained(tmp_path, every_step=False)
    for a, b in zip(run[2].parameters(), plain.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_layer_that_raises_between_full_samples_leaves_all_in_order(tmp_path: Path) -> None:
    class Fails(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if len(x) == 1:
                raise ValueError("one sample")
            return x * 2

    model = nn.Sequential(nn.Linear(4, 4), Fails(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with clew.attach(run_root=tmp_path, every_step=True, quiet=True) as session:
        for step in range(DENSE_STEPS + 6):
            if step == DENSE_STEPS + 2:
                with pytest.raises(ValueError, match="one sample"):
                    model(torch.randn(1, 4))
            model(torch.randn(8, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    data = open_run(session.path).data
    assert series(data, "activation.mean", "2")[0] == list(range(DENSE_STEPS + 6))
    assert not [fact for fact in data.facts if fact.kind == "incident"]


@BOTH_WAYS
def test_a_mode_that_the_program_sets_in_its_forward_is_neither_moved_nor_hidden(
    tmp_path: Path, relu: Any
) -> None:
    """Clew's own steps aside for layers, but only where it is the last one that was set."""
    seen: list[str] = []

    class Listening(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    class Watched(Net):
        def forward(self, x: Tensor) -> Tensor:
            with Listening():
                return super().forward(x)

    model = Watched(relu)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def steps(count: int) -> list[str]:
        seen.clear()
        for _ in range(count):
            model(torch.randn(16, 6)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return list(seen)

    def of_the_program(names: list[str]) -> list[str]:
        return [name for name in names if name in ("linear", "relu", "tanh", "dropout")]

    alone = steps(3)
    with clew.attach(run_root=tmp_path, every_step=True, quiet=True) as session:
        steps(DENSE_STEPS + 1)
        assert of_the_program(steps(3)) == of_the_program(alone)
    assert torch.overrides._get_current_function_mode() is None
    data = open_run(session.path).data
    assert series(data, "activation.std", "first", "relu")[0] == list(range(DENSE_STEPS + 4))


@BOTH_WAYS
def test_an_interrupt_inside_a_layer_leaves_nothing_behind(tmp_path: Path, relu: Any) -> None:
    """torch calls no hook then: the layer for which the mode has stepped aside never returns."""
    model, original = Net(relu), torch.relu
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    interrupted = []

    def interrupt(*_: Any) -> None:
        if len(interrupted) == 1:
            interrupted.append(1)
            raise KeyboardInterrupt

    model.last.register_forward_pre_hook(interrupt)
    with clew.attach(run_root=tmp_path, every_step=True, quiet=True) as session:
        for step in range(DENSE_STEPS + 6):
            if step == DENSE_STEPS + 2:
                interrupted.append(0)
                with pytest.raises(KeyboardInterrupt):
                    model(torch.randn(16, 6))
            model(torch.randn(16, 6)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert torch.overrides._get_current_function_mode() is None
    assert torch.relu is original
    data = open_run(session.path).data
    assert not [fact for fact in data.facts if fact.kind == "incident"]
    assert series(data, "activation.std", "first", "relu")[0][-1] == DENSE_STEPS + 5


def test_layers_on_a_device_are_measured_on_every_step_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    """No accelerator is needed: tensors of the host are treated as if they were on one."""
    for module in (deferred_values, step_rows, parameter_stats):
        monkeypatch.setattr(module, "on_host", lambda tensor: False)
    data, _, _ = trained(tmp_path)
    assert not [fact for fact in data.facts if fact.kind == "incident"]
    steps, values = series(data, "activation.mean", "first", "relu")
    assert steps == list(range(STEPS))
    np.testing.assert_allclose(
        values, series(run[0], "activation.mean", "first", "relu")[1], rtol=1e-3, atol=1e-5
    )


def test_a_run_that_ends_with_an_interrupted_forward_leaves_nothing_behind(tmp_path: Path) -> None:
    model, original = Net(), torch.relu
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    def train() -> None:
        with clew.attach(run_root=tmp_path, quiet=True):
            for step in range(4):
                if step == 3:
                    model.body.register_forward_pre_hook(interrupt)
                model(torch.randn(16, 6)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()

    with pytest.raises(KeyboardInterrupt):
        train()
    assert torch.overrides._get_current_function_mode() is None
    assert torch.relu is original


@pytest.mark.parametrize("relu", [F.relu, lambda x: torch.relu(x), lambda x: F.relu(x, inplace=True)])
def test_what_is_called_by_name_needs_no_mode_between_full_samples(tmp_path: Path, relu: Any) -> None:
    modes, functions, original = [], [], torch.relu

    class Looking(Net):
        def forward(self, x: Tensor) -> Tensor:
            modes.append(torch.overrides._get_current_function_mode())
            functions.append(torch.relu)
            return super().forward(x)

    trained_by_hand(tmp_path, Looking(relu), DENSE_STEPS + 4)
    assert None not in modes[:DENSE_STEPS]
    assert modes[-3:] == [None] * 3
    assert original not in functions[-3:]
    assert torch.relu is original


def test_a_call_that_only_a_mode_sees_keeps_the_mode(tmp_path: Path) -> None:
    """Beside one that is seen by its name."""
    model = Net()
    model.body[1].forward = Tensor.tanh
    data = trained_by_hand(tmp_path, model, DENSE_STEPS + 4)
    for module, op in (("first", "relu"), ("body.1", "tanh")):
        assert series(data, "activation.std", module, op)[0] == list(range(DENSE_STEPS + 4))


def test_calls_of_other_threads_are_not_taken_for_the_models(tmp_path: Path) -> None:
    class Busy(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = super().forward(x)
            thread = threading.Thread(target=torch.relu, args=(torch.full((4, 4), 1e6),))
            thread.start()
            thread.join()
            return x

    data = trained_by_hand(tmp_path, Busy(), DENSE_STEPS + 4)
    assert max(values.max() for _, _, values in data.series("activation.max")) < 1e6


def test_torch_is_as_it_was_where_no_step_does_without_the_mode(tmp_path: Path) -> None:
    functions = set()

    class Looking(Net):
        def forward(self, x: Tensor) -> Tensor:
            functions.add(torch.relu)
            return super().forward(x)

    trained_by_hand(tmp_path, Looking(), DENSE_STEPS + 4, every_step=False)
    assert functions == {torch.relu}


def trained_by_hand(folder: Path, model: nn.Module, steps: int, every_step: bool = True) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with clew.attach(run_root=folder, every_step=every_step, quiet=True) as session:
        for _ in range(steps):
            model(torch.randn(16, 6)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    data = open_run(session.path).data
    assert not [fact for fact in data.facts if fact.kind == "incident"]
    return data
