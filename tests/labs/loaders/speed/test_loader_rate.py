"""How fast a loader, a model and both are, and that measuring leaves no trace."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, TensorDataset

from clew.labs.loaders.readable_loader import readable_loader
from clew.labs.loaders.speed import loader_rate
from clew.labs.loaders.speed.loader_rate import Endless, LoaderSetting, deliver, rate_of
from clew.labs.loaders.speed.speed_measurement import measure
from clew.labs.snapshot.step_batch import StepBatch
from clew.labs.snapshot.subject import Subject
from clew.records.errors import CannotRead
from clew.records.facts.loader_facts import SpeedFact, measured_facts
from clew.records.loader_speed import LOADER, MODEL, MeasuredLoader, Rate, Speeds

SLEEP = 0.002
KNOWN: set[int] = set()  # processes that are there before a test


class Sleepy(Dataset[tuple[Tensor, int]]):
    """Every sample takes a while, without using a processor."""

    def __init__(self, count: int = 64, bad: int | None = None, sleep: float = SLEEP) -> None:
        self.count = count
        self.sleep = sleep
        self.bad = bad
        self.read = 0
        self.rng = np.random.default_rng(0)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        self.read += 1
        time.sleep(self.sleep)
        if index == self.bad:
            raise ValueError(f"sample {index} is broken")
        return torch.full((4,), float(self.rng.normal()) + torch.rand(()).item()), index % 2


class Locked(Sleepy):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()  # can be neither copied nor pickled

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index), self.lock


class Numbers(IterableDataset[Tensor]):
    def __iter__(self) -> Iterator[Tensor]:
        for n in range(40):
            yield torch.full((3,), float(n))


def delivered(loader: Any, setting: LoaderSetting, seconds: float = 0.2, **more: Any) -> Any:
    readable = readable_loader(loader)
    with readable.reading():
        return deliver(readable, setting, seconds, **more)


@pytest.fixture(autouse=True)
def known_before() -> None:
    """Other tests of this process may have started some, which they keep."""
    KNOWN.clear()
    KNOWN.update(child.pid for child in psutil.Process().children())


def children() -> list[Any]:
    """Processes that this test has left, but for the one that Python keeps where processes are spawned."""
    found = [
        c for c in psutil.Process().children() if c.pid not in KNOWN and c.status() != psutil.STATUS_ZOMBIE
    ]
    return [c for c in found if "resource_tracker" not in " ".join(c.cmdline())]


def test_the_rate_is_that_of_the_sleeps() -> None:
    found = delivered(DataLoader(Sleepy(), batch_size=8), LoaderSetting(0))
    assert found.rate.median < 1 / SLEEP  # it can't be faster than it sleeps
    assert found.rate.median > 0.05 / SLEEP
    assert found.batch == 8
    assert found.rate.low <= found.rate.median <= found.rate.high


def test_workers_sleep_side_by_side() -> None:
    loader = DataLoader(Sleepy(256, sleep=0.02), batch_size=8)
    alone, four = delivered(loader, LoaderSetting(0), 0.5), delivered(loader, LoaderSetting(4, 2), 0.5)
    assert four.rate.median > 1.3 * alone.rate.median
    assert children() == []


def test_a_short_epoch_is_begun_again() -> None:
    found = delivered(DataLoader(Sleepy(6), batch_size=4), LoaderSetting(0))
    assert {mark[0] for mark in found.marks} == {4, 2}
    assert len(found.marks) > 2


def test_batches_that_raise_are_counted_and_the_rest_goes_on() -> None:
    loader = DataLoader(Sleepy(32, bad=5), batch_size=4)
    for setting in (LoaderSetting(0), LoaderSetting(1, 2)):
        found = delivered(loader, setting)
        assert found.failed > 0
        assert found.error == "ValueError: sample 5 is broken"
        assert found.rate is not None


def test_a_loader_that_always_raises_gives_no_rate_and_ends() -> None:
    class Broken(Sleepy):
        def __getitem__(self, index: int) -> tuple[Tensor, int]:
            raise KeyError(index)

    found = delivered(DataLoader(Broken(), batch_size=4), LoaderSetting(1, 2))
    assert found.rate is None
    assert "KeyError" in found.error
    assert children() == []


def test_an_iterable_dataset_is_read_from_its_beginning_again() -> None:
    found = delivered(DataLoader(Numbers(), batch_size=8), LoaderSetting(0), 0.1)
    assert sum(mark[0] for mark in found.marks) > 80
    with_worker = delivered(DataLoader(Numbers(), batch_size=8), LoaderSetting(1, 2), 0.2)
    assert with_worker.rate is not None
    assert children() == []


def test_an_empty_iterable_dataset_ends() -> None:
    class Nothing(IterableDataset[Tensor]):
        def __iter__(self) -> Iterator[Tensor]:
            return iter(())

    assert delivered(DataLoader(Nothing(), batch_size=8), LoaderSetting(0), 0.1).rate is None


def test_batch_samplers_and_collate_of_the_users_own_are_used() -> None:
    sizes = [1, 5, 2]

    class Uneven:
        def __iter__(self) -> Iterator[list[int]]:
            yield from (list(range(n)) for n in sizes)

    loader = DataLoader(
        Sleepy(8),
        batch_sampler=Uneven(),
        collate_fn=lambda samples: {"n": len(samples)},  # type: ignore[arg-type]
    )
    found = delivered(loader, LoaderSetting(0), keep=3)
    assert [batch["n"] for batch in found.kept] == sizes
    assert {mark[0] for mark in found.marks} == set(sizes)


@pytest.mark.filterwarnings("ignore:Got pickle error")  # torch says so beside raising
def test_what_can_not_be_started_raises_and_leaves_no_process() -> None:
    settings: Any = {"num_workers": 1, "multiprocessing_context": "spawn", "collate_fn": list}
    loader = DataLoader(Locked(), batch_size=8, **settings)
    with pytest.raises(TypeError, match="pickle"):
        delivered(loader, LoaderSetting(1, 2))
    assert children() == []
    found = measure(readable_loader(loader), seconds=1.0)
    assert found.speeds is None
    assert "pickle" in found.notes["speeds"]
    assert found.stages is not None  # which needs no other process
    assert found.stages.samples > 0


def test_one_batch_is_enough_where_it_takes_longer_than_all_the_time() -> None:
    found = delivered(DataLoader(Sleepy(), batch_size=16), LoaderSetting(0), 0.001)
    assert len(found.marks) == 1
    assert found.rate is not None


def test_no_more_batches_are_kept_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader_rate, "MOST_KEPT", 2 * 8 * 4 * 4)  # of two batches
    found = delivered(DataLoader(Sleepy(), batch_size=8), LoaderSetting(0), keep=32)
    assert len(found.marks) > 3
    assert len(found.kept) <= 2


def test_parts_for_which_there_is_no_time_are_named() -> None:
    found = measure(readable_loader(DataLoader(Sleepy(), batch_size=32)), seconds=0.02)
    assert found.stages is not None
    assert "out of time" in found.notes["moving"]


def test_work_on_every_batch_shows_as_time_without_waiting() -> None:
    found = delivered(DataLoader(Sleepy(), batch_size=2), LoaderSetting(0), work=lambda: time.sleep(0.05))
    assert found.wait < 0.5


def test_a_list_of_batches_has_no_loader_to_start() -> None:
    readable = readable_loader([torch.zeros(4, 2), torch.ones(4, 2)])
    with pytest.raises(CannotRead):
        deliver(readable, LoaderSetting(0), 0.1)


def test_an_endless_sampler_of_nothing_ends() -> None:
    assert list(Endless([])) == []


def test_rates_have_the_spread_of_their_stretches() -> None:
    rate = rate_of([(10, 1.0)] * 8 + [(10, 2.0)] * 8)
    assert rate is not None
    assert (rate.low, rate.high) == (5.0, 10.0)
    assert rate.samples == 160
    assert rate_of([]) is None


def test_a_stretch_that_is_too_short_joins_the_one_before() -> None:
    rate = rate_of([(10, 1.0), (10, 1.0), (10, 4.0)], together=2)
    assert rate is not None
    assert rate.median == rate.low == rate.high == 5.0
    longer = rate_of([(10, 1.0)] * 4 + [(10, 4.0)], together=2)
    assert longer is not None
    assert (longer.low, longer.high) == (5.0, 10.0)


# -- all together --


def test_what_limits_is_named() -> None:
    slow, fast = Rate(100.0), Rate(1000.0)
    assert Speeds(slow, fast).limited_by == LOADER
    assert Speeds(fast, slow).limited_by == MODEL
    assert Speeds(slow, Rate(105.0)).limited_by == "even"
    assert Speeds(slow).limited_by == ""


def test_a_slow_loader_before_a_small_model_is_what_limits() -> None:
    model = nn.Linear(4, 2)
    found = measure(readable_loader(DataLoader(Sleepy(), batch_size=8)), model=model, seconds=2.0)
    speeds = found.speeds
    assert speeds is not None
    assert speeds.limited_by == LOADER
    assert speeds.step == "forward"
    assert speeds.wait is not None
    assert speeds.wait > 0.5
    assert MeasuredLoader.from_json(found.to_json()) == found
    facts = {fact.fact_kind: fact.to_json() for fact in measured_facts(found)}
    assert SpeedFact.read(facts["data.speed"]).measured == speeds


class Tired(nn.Module):
    """Takes longer than its loader, without using a processor."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, given: Tensor) -> Tensor:
        time.sleep(0.02)
        out: Tensor = self.layer(given)
        return out


def test_the_programs_own_step_is_timed_on_a_snapshot() -> None:
    model = Tired()
    optimizer = torch.optim.Adam(model.parameters())
    values = {"x": torch.randn(8, 4), "y": torch.zeros(8, dtype=torch.long)}
    subject = Subject(
        {"model": model},
        [StepBatch.of(values, {id(values["x"]): "input", id(values["y"]): "target"})],
        lambda batch: nn.functional.cross_entropy(model(batch.values["x"]), batch.values["y"]),
        [optimizer],
    )
    before = [p.clone() for p in model.parameters()]
    data = TensorDataset(torch.randn(64, 4), torch.zeros(64, dtype=torch.long))
    found = measure(readable_loader(DataLoader(data, batch_size=8)), subject=subject, seconds=1.5)
    assert found.speeds is not None
    assert found.speeds.step == "training step"
    assert found.speeds.limited_by == MODEL
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert not optimizer.state
    assert all(p.grad is None for p in model.parameters())


def test_without_a_model_the_loader_is_measured_alone() -> None:
    found = measure(readable_loader(DataLoader(Sleepy(), batch_size=8)), seconds=1.0)
    assert found.speeds is not None
    assert found.speeds.loader is not None
    assert found.speeds.model is None
    assert found.speeds.limited_by == ""
    assert "model" in found.notes


def test_measuring_leaves_everything_as_it_was() -> None:
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)
    generator = torch.Generator().manual_seed(5)
    data = Sleepy()
    sampler = RandomSampler(data, generator=generator)
    loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=1, generator=generator)
    model = nn.Linear(4, 2)
    state = (torch.get_rng_state(), generator.get_state(), random.getstate(), str(np.random.get_state()))
    held, numbers = dict(vars(data)), data.rng.bit_generator.state
    settings = dict(vars(loader))
    measure(readable_loader(loader), model=model, seconds=1.5, sweep=True)
    assert torch.equal(torch.get_rng_state(), state[0])
    assert torch.equal(generator.get_state(), state[1])
    assert random.getstate() == state[2]
    assert str(np.random.get_state()) == state[3]
    assert dict(vars(data)) == held
    assert data.rng.bit_generator.state == numbers
    assert dict(vars(loader)) == settings
    assert children() == []


def test_a_program_trains_the_same_after_it_was_measured() -> None:
    def trained(measured: bool) -> list[float]:
        torch.manual_seed(0)
        data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
        loader = DataLoader(data, batch_size=8, shuffle=True)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if measured:
            measure(readable_loader(loader), model=model, seconds=0.6)
        losses = []
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    assert trained(measured=True) == trained(measured=False)
