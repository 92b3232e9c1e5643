"""What a program does besides computing, as a profile's windows show it: where, how often, how large."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from watched_programs import Watched, watched

from clew.labs.profiler.data_loading import kept_data, moving, narrowest, part
from clew.labs.profiler.slow_patterns import PatternObserver

X = torch.randn(64, 6, generator=torch.Generator().manual_seed(1))
Y = torch.arange(64) % 3


@contextlib.contextmanager
def observed() -> Iterator[tuple[Watched, PatternObserver]]:
    """A program in one window; the facts are there afterwards."""
    with watched() as program:
        observer = PatternObserver(program.watcher, program.guard)
        observer.begin()
        observer.start()
        yield program, observer
        observer.finish()


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.1), nn.Linear(8, 3))


def train(model: nn.Module, batches: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def rows(n: int = 64) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(X[i : i + 8], Y[i : i + 8]) for i in range(0, n, 8)]


def test_lists_that_become_tensors_are_timed_at_the_line_that_asks() -> None:
    def batches() -> Iterator[Any]:
        for x, y in rows():
            made = torch.tensor([list(map(float, range(90))), list(map(float, range(90)))])
            torch.tensor([1.0, 2.0])  # too short to matter
            yield x + made[0, 0], y

    with observed() as (program, _):
        train(net(), batches())
    (built,) = program.notes.of("profile.tensors")
    assert (built["of"], built["file"], built["calls"]) == ("numbers", __file__, 1.0)
    assert built["elements"] == 180
    assert 0 < built["needed"] <= built["seconds"]


def test_a_list_of_arrays_is_told_from_a_list_of_numbers() -> None:
    with observed() as (program, _), pytest.warns(UserWarning, match="list of numpy"):
        torch.tensor([np.zeros(50), np.ones(50)])
    (built,) = program.notes.of("profile.tensors")
    assert built["of"] == "arrays"


def test_what_torch_itself_collates_is_not_blamed_on_the_program() -> None:
    class Numbers(Dataset[Any]):
        def __len__(self) -> int:
            return 256

        def __getitem__(self, index: int) -> float:
            return float(index)

    with observed() as (program, _):
        next(iter(DataLoader(Numbers(), batch_size=128)))
    assert program.notes.of("profile.tensors") == []


def evaluated(mode: Any, after: Any = None) -> list[dict[str, Any]]:
    model = net()
    with observed() as (program, _):
        for _ in range(3):
            train(model, rows())
            model.eval()
            with mode():
                for x, _y in rows():
                    output = model(x.requires_grad_())
                    if after is not None:
                        after(output, x)
        train(model, rows())
    return program.notes.of("profile.evaluation")


def test_an_evaluation_with_gradients_is_noted_and_one_without_is_not() -> None:
    (found,) = evaluated(contextlib.nullcontext)
    assert (found["file"], found["sections"]) == (__file__, 3)
    assert 0 < found["seconds"] < found["run"]
    assert evaluated(torch.no_grad) == []


def test_graphs_that_are_used_are_no_waste() -> None:
    assert evaluated(contextlib.nullcontext, lambda out, x: torch.autograd.grad(out.sum(), x)) == []
    assert evaluated(contextlib.nullcontext, lambda out, x: out.sum().backward()) == []


def test_a_loaders_batches_are_described_with_the_types_they_fit_into() -> None:
    data = TensorDataset(torch.arange(4096).reshape(64, 64) % 200, Y, X.double())
    loader = DataLoader(data, batch_size=16)
    with observed() as (program, _):
        train(net(), ((x.float(), y) for _ in range(2) for _pixels, y, x in loader))
    (seen,) = program.notes.of("profile.loading")
    assert [(p["dtype"], p["fits"]) for p in seen["parts"]] == [
        ("int64", "uint8"),
        ("int64", "uint8"),
        ("float64", "float32"),
    ]
    assert (seen["samples"], seen["batches"], seen["starts"]) == (16, 1.0, 2)
    assert seen["move"] == 0.0  # nobody moves it: there are no workers


@pytest.mark.parametrize(
    ("values", "fits"), [([0, 255], "uint8"), ([0, 256], "int16"), ([-1, 40000], "int32"), ([2**40], "int64")]
)
def test_the_narrowest_type_holds_all_values(values: list[int], fits: str) -> None:
    assert narrowest(torch.tensor(values), "int64") == fits
    assert part(np.array(values)).fits == fits


def test_moving_more_bytes_takes_a_time_that_can_be_measured() -> None:
    assert moving(1 << 22, pickled=False) > 0
    assert moving(1 << 22, pickled=True) > 0


def test_data_kept_as_lists_or_twice_as_wide_as_needed_is_found_in_the_dataset() -> None:
    class Kept(Dataset[Any]):
        def __init__(self) -> None:
            self.rows = [[float(n), 1.0, 2.0] for n in range(300)]
            self.names = ["a"] * 300
            self.few = [[1.0, 2.0]]
            self.wide = np.zeros((300, 300))
            self.narrow = np.zeros((300, 300), dtype=np.float32)

    import weakref

    loader = DataLoader(Kept(), sampler=[0])
    found = {entry.attribute: entry for entry in kept_data({3: weakref.ref(loader)})}
    assert {name: entry.of for name, entry in found.items()} == {"rows": "list", "wide": "float64"}
    assert (found["rows"].items, found["rows"].numbers, found["rows"].loader) == (300, 3, 3)


def test_nothing_is_left_in_torch_between_windows() -> None:
    before = (torch.tensor, torch.as_tensor, DataLoader._get_iterator, torch.autograd.grad)
    with observed() as (_program, observer):
        assert torch.tensor is not before[0]
        observer.stop()
        assert (torch.tensor, torch.as_tensor) == before[:2]
        observer.start()
    assert (torch.tensor, torch.as_tensor, DataLoader._get_iterator, torch.autograd.grad) == before
