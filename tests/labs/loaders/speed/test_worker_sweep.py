"""Settings tried: workers where loading waits for something, none where it takes no time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

from clew.labs.loaders.readable_loader import readable_loader
from clew.labs.loaders.speed import worker_sweep
from clew.labs.loaders.speed.loader_rate import LoaderSetting
from clew.labs.loaders.speed.worker_sweep import (
    SPLIT_HINT,
    SettingRates,
    gain_of,
    select_setting,
    splits_itself,
    sweep,
)
from clew.records.loader_speed import Rate, Sweep


class Waiting(Dataset[Tensor]):
    """As from a slow disk."""

    def __len__(self) -> int:
        return 512

    def __getitem__(self, index: int) -> Tensor:
        time.sleep(0.01)
        return torch.full((2,), float(index))


def mine(numbers: range) -> range:
    worker = get_worker_info()
    return numbers if worker is None else numbers[worker.id :: worker.num_workers]


def swept(loader: Any, seconds: float = 2.5, **more: Any) -> Sweep:
    readable = readable_loader(loader)
    with readable.reading():
        return sweep(readable, seconds, **more)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_sweep, "usable_cores", lambda: 2)


def test_workers_are_found_where_loading_sleeps() -> None:
    before = set(psutil.Process().children())
    found = swept(DataLoader(Waiting(), batch_size=8), 6.0)  # workers may take a second to start
    assert found.best_workers is not None
    assert found.best_workers >= 2
    assert (found.workers, found.prefetch) == (0, 0)
    assert found.gain is None  # what training gains is not known without a step
    assert found.now is not None
    assert {row.workers for row in found.rows} >= {0, 1, 2}
    assert set(psutil.Process().children()) <= before


def test_no_workers_are_advised_where_loading_takes_no_time() -> None:
    data = TensorDataset(torch.randn(4096, 2))
    found = swept(DataLoader(data, batch_size=2), work=lambda: time.sleep(0.01))
    assert found.best_workers == 0
    assert found.with_step
    assert found.gain == 0.0


def test_the_gain_is_that_of_the_step_not_of_the_loader() -> None:
    found = swept(DataLoader(Waiting(), batch_size=4), work=lambda: time.sleep(0.04))
    # A step of 40 ms after 40 ms of loading: at best half of it is saved, however fast the loader gets.
    assert found.gain is not None
    assert 0.1 < found.gain < 0.75
    assert found.best_workers is not None
    assert found.best_workers >= 1


def test_a_dataset_that_would_repeat_itself_gets_one_worker_at_most() -> None:
    class Stream(IterableDataset[Tensor]):
        def __iter__(self) -> Iterator[Tensor]:
            for n in range(200):
                time.sleep(0.001)
                yield torch.full((2,), float(n))

    found = swept(DataLoader(Stream(), batch_size=8), 2.0)
    assert {row.workers for row in found.rows} == {0, 1}
    assert found.notes == (SPLIT_HINT,)


def test_a_dataset_that_asks_which_worker_it_is_in_splits_itself() -> None:
    class Split(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return self._part()

        def _part(self) -> Iterator[int]:
            worker = get_worker_info()
            yield from range(worker.id if worker else 0, 10, worker.num_workers if worker else 1)

    class Whole(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(10))

    class ByFunction(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(mine(range(10)))

    assert splits_itself(Split())
    assert splits_itself(ByFunction())
    assert not splits_itself(Whole())
    assert splits_itself(Whole(), DataLoader(Whole(), worker_init_fn=print))  # which may split it


def test_a_setting_that_fails_is_a_row_with_its_reason() -> None:
    class NotInWorkers(Waiting):
        def __getitem__(self, index: int) -> Tensor:
            if get_worker_info() is not None:
                raise RuntimeError("only in the main process")
            return super().__getitem__(index)

    found = swept(DataLoader(NotInWorkers(), batch_size=8), 2.0)
    assert found.best_workers is None  # there is nothing to compare with
    assert all(row.rate is None and "only in the main" in row.error for row in found.rows if row.workers)


def trial(workers: int, prefetch: int, *rates: float) -> SettingRates:
    return SettingRates(LoaderSetting(workers, prefetch), [Rate(r, r, r, 10, 1.0) for r in rates])


def test_the_simplest_of_the_fast_ones_is_chosen() -> None:
    tried = [trial(0, 0, 50, 50), trial(2, 2, 97, 98), trial(4, 2, 100, 99), trial(2, 8, 99, 99)]
    best = select_setting(tried)
    assert best is not None
    assert best.setting == LoaderSetting(2, 2)


def test_noise_alone_adds_no_workers() -> None:
    best = select_setting([trial(0, 0, 90, 92, 88), trial(2, 2, 85, 100, 115)])
    assert best is not None
    assert best.setting == LoaderSetting(0)


def test_noise_excuses_no_great_loss() -> None:
    best = select_setting([trial(0, 0, 50, 50), trial(2, 2, 60, 100, 140)])
    assert best is not None
    assert best.setting == LoaderSetting(2, 2)


def test_a_gain_is_none_where_one_pair_says_otherwise() -> None:
    assert gain_of([(10, 20), (11, 19), (12, 24)]) == pytest.approx(0.5)
    assert gain_of([(10, 20), (21, 19), (12, 24)]) == 0.0
    assert gain_of([]) == 0.0


def test_more_workers_save_no_more_than_the_waiting() -> None:
    def work() -> None:
        time.sleep(0.03 if len(calls) % 3 else 0.0)  # a machine that is busy at times
        calls.append(1)

    calls: list[int] = []
    data = TensorDataset(torch.randn(4096, 2))
    found = swept(DataLoader(data, batch_size=2), 2.0, work=work)
    assert found.gain is not None
    assert found.gain < 0.3


def test_one_setting_alone_is_no_comparison() -> None:
    assert select_setting([trial(0, 0, 50)]) is None


def test_workers_that_would_not_fit_into_memory_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_sweep, "memory_of", lambda _: 1e15)
    found = swept(DataLoader(Waiting(), batch_size=8), 2.0)
    left_out = [row for row in found.rows if "memory" in row.error]
    assert left_out
    assert all(row.workers > 0 for row in left_out)
