"""Code that runs in a snapshot leaves nothing behind, whatever it does."""

from __future__ import annotations

import contextlib
import random
import warnings
from collections import deque
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_hooks

from clew.labs.snapshot.inplace_writes import WriteJournal
from clew.labs.snapshot.op_recorder import OpRecorder
from clew.labs.snapshot.snapshot import Autocast, network_snapshot, snapshot
from clew.measure.rng import Rng


class Net(nn.Module):
    """Holds all kinds of state."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.count = 0
        self.history: dict[str, list[int]] = {"seen": []}
        self.recent: deque[int] = deque([1, 2], maxlen=2)
        self.plain = torch.zeros(3)
        self.array = np.zeros(3)
        self.generator = torch.Generator().manual_seed(5)

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.history["seen"].append(self.count)
        self.recent.append(self.count)
        self.plain += 1
        self.array += 1
        self.noise = torch.rand(3, generator=self.generator)
        return self.norm(self.layer(x))


def state(model: Net) -> Any:
    return (
        {name: value.clone().tolist() for name, value in model.state_dict().items()},
        [(p._version, p.requires_grad, id(p.grad)) for p in model.parameters()],
        [(b._version, b.requires_grad) for b in model.buffers()],
        [module.training for module in model.modules()],
        (
            model.count,
            dict(model.history),
            list(model.history["seen"]),
            list(model.recent),
            model.recent.maxlen,
        ),
        (model.plain.tolist(), model.plain._version, model.array.tolist()),
        model.generator.get_state().tolist(),
        sorted(vars(model)),
        (random.getstate(), torch.get_rng_state().tolist(), str(np.random.get_state())),
        (torch.is_grad_enabled(), torch.get_default_dtype(), torch.is_anomaly_enabled()),
    )


def disturb(model: Net) -> None:
    """A training step that changes all there is to change."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    model.layer.weight.requires_grad_(True)
    model(torch.rand(4, 3)).sum().backward()
    optimizer.step()
    model.norm.bias.requires_grad_(False)
    random.random()
    np.random.rand()
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)


@pytest.fixture
def model() -> Net:
    made = Net()
    made.norm.eval()
    made.layer.weight.requires_grad_(False)
    made(torch.rand(4, 3)).sum().backward()
    return made


@pytest.mark.parametrize("quiet", [True, False])
def test_a_training_step_in_a_copy_leaves_no_trace(model: Net, quiet: bool) -> None:
    before = state(model)
    with snapshot(model.modules(), copy=True, quiet=quiet):
        disturb(model)
        assert state(model) != before
    assert state(model) == before


def test_the_same_holds_when_the_code_fails(model: Net) -> None:
    before = state(model)
    with contextlib.suppress(ZeroDivisionError), snapshot(model.modules(), copy=True):
        disturb(model)
        raise ZeroDivisionError
    assert state(model) == before


class Writes(OpRecorder):
    """Reports to a journal, and does nothing else."""

    def __init__(self, journal: WriteJournal) -> None:
        super().__init__(journal.before_write)


def test_with_an_op_recorder_nothing_needs_to_be_copied_beforehand(model: Net) -> None:
    before = state(model)
    given = torch.ones(4, 3)
    with network_snapshot(model, [given]) as journal, Writes(journal):
        model.train()
        model(given.mul_(2))
    assert state(model)[:6] == before[:6]
    assert given.tolist() == torch.ones(4, 3).tolist()
    assert given._version == 0


def test_it_starts_from_what_is_asked_for() -> None:
    start = Rng.take()
    first = torch.rand(3)
    with snapshot(rng=start, autocast=Autocast("cpu", True, torch.bfloat16)):
        assert torch.equal(torch.rand(3), first)
        assert torch.is_autocast_enabled("cpu")
    assert not torch.is_autocast_enabled("cpu")


def test_nobody_hears_of_it(model: Net, capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []
    handles = [
        model.layer.register_forward_hook(lambda *_: heard.append("module")),
        model.norm.weight.register_hook(lambda _: heard.append("tensor")),
        global_hooks.register_module_forward_hook(lambda *_: heard.append("all modules")),
    ]
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with snapshot(model.modules(), copy=True):
                print("printed")
                warnings.warn("warned", stacklevel=1)
                model(torch.rand(4, 3)).sum().backward()
        assert heard == []
        assert warned == []
        model(torch.rand(4, 3)).sum().backward()
        assert set(heard) == {"module", "tensor", "all modules"}
    finally:
        for handle in handles:
            handle.remove()
    assert capsys.readouterr().out == ""


class Data:
    """Not a module: a dataset."""

    def __init__(self) -> None:
        self.rows = [[1], [2]]
        self.read = 0
        self.random = np.random.default_rng(0)


def test_other_objects_keep_their_attributes_lists_and_generators() -> None:
    data = Data()
    expected = np.random.default_rng(0).random()
    with snapshot([data]):
        data.rows.append([3])
        data.read = 7
        data.random.random()
        data.cache = {}  # type: ignore[attr-defined]
    assert data.rows == [[1], [2]]
    assert data.read == 0
    assert not hasattr(data, "cache")
    assert data.random.random() == expected


def test_tensors_that_no_owner_holds_are_put_back() -> None:
    loose = nn.Parameter(torch.ones(2))
    with snapshot(tensors=[loose], copy=True):
        loose.sum().backward()
        loose.data.add_(1)
    assert loose.tolist() == [1.0, 1.0]
    assert loose.grad is None


def test_tensors_made_under_inference_mode_are_put_back() -> None:
    with torch.inference_mode():
        made = torch.ones(2)
    with snapshot(tensors=[made], copy=True), torch.inference_mode():
        made.add_(1)
    assert made.tolist() == [1.0, 1.0]


NUMBERS = [torch.float64, torch.float32, torch.bfloat16, torch.complex64, torch.complex128]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_values_are_restored_bit_by_bit(dtype: torch.dtype) -> None:
    held = torch.tensor([-0.0]).to(dtype)
    bits = held.clone().view(torch.uint8).tolist()
    with snapshot(tensors=[held], copy=True):
        held.zero_()
        assert held.view(torch.uint8).tolist() != bits
    assert held.view(torch.uint8).tolist() == bits


def test_memory_that_was_not_changed_is_not_written_to() -> None:
    held = torch.tensor([float("nan"), 1.0])
    writes: list[int] = []

    class Counting(OpRecorder):
        def __init__(self) -> None:
            super().__init__(lambda tensor: writes.append(id(tensor)))

    with Counting(), snapshot(tensors=[held], copy=True):
        pass
    assert writes == []
