from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_runs import block, declarations, only_series

from clew.store.read import run_data
from clew.store.read.run_data import RunData


def fed(dtype: str, sizes: list[int], keep_rows: int | None) -> RunData:
    data = RunData(keep_rows=keep_rows)
    for payload in declarations(dtype):
        data.feed(payload)
    start = 0
    for size in sizes:
        steps = np.arange(start, start + size)
        data.feed(block(steps, steps[:, None] % 251, dtype))
        start += size
    return data


@settings(deadline=None)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=12), st.sampled_from(["f4", "u1"]))
def test_a_bounded_view_keeps_the_first_and_the_last_rows(sizes, dtype):
    total, keep = sum(sizes), 40
    data = fed(dtype, sizes, keep)
    _, steps, values = only_series(data, "loss")
    assert len(steps) <= 64 + keep + 16
    assert steps[:64].tolist() == list(range(total))[:64]
    assert steps[-min(keep, total) :].tolist() == list(range(total))[-keep:]
    assert (values == steps % 251).all()
    assert data.complete == (len(steps) == total)
    assert data.last_step == total - 1


def test_rows_of_every_step_are_bounded_too(monkeypatch):
    monkeypatch.setattr(run_data, "EVERY_HEAD", 10)
    monkeypatch.setattr(run_data, "EVERY_TAIL", 100)
    data = fed("f8", [70] * 20, keep_rows=5)
    steps = only_series(data, "loss")[1]
    assert len(steps) <= 10 + 100 + 25
    assert steps[:10].tolist() == list(range(10))
    assert steps[-100:].tolist() == list(range(1300, 1400))
    assert not data.complete


def test_without_a_bound_everything_is_kept():
    data = fed("f4", [1000] * 5, None)
    assert only_series(data, "loss")[1].tolist() == list(range(5000))
    assert data.complete


def test_series_come_back_ordered_by_step():
    data = RunData()
    for payload in declarations():
        data.feed(payload)
    for start in (50, 0):
        steps = np.arange(start, start + 10)
        data.feed(block(steps, steps[:, None] * 1.0))
    _, steps, values = only_series(data, "loss")
    assert steps.tolist() == values.tolist() == [*range(10), *range(50, 60)]


def test_a_returned_series_does_not_change_when_more_arrives():
    data = fed("f4", [64, 30], 20)
    _, steps, values = only_series(data, "loss")
    before = steps.copy(), values.copy()
    for start in range(94, 1000, 10):
        more = np.arange(start, start + 10)
        data.feed(block(more, more[:, None] % 251, "f4"))
    np.testing.assert_array_equal(steps, before[0])
    np.testing.assert_array_equal(values, before[1])


def test_changing_a_returned_series_does_not_change_the_run():
    data = fed("f8", [10], None)
    only_series(data, "loss")[2][:] = -1
    assert only_series(data, "loss")[2].tolist() == list(range(10))


@pytest.mark.parametrize("columns", [(3, 4)])
def test_columns_are_site_major(columns):
    sites, signals = columns
    data = RunData()
    for payload in declarations("f8", tuple("abcd"), sites):
        data.feed(payload)
    data.feed(block(np.array([0]), np.arange(sites * signals, dtype=float)[None]))
    found = {(site.module, name): values.tolist() for name in "abcd" for site, _, values in data.series(name)}
    assert found == {(f"m{i}", name): [i * 4.0 + k] for i in range(3) for k, name in enumerate("abcd")}


def test_reading_while_another_thread_feeds_sees_whole_rows():
    data = RunData(keep_rows=50)
    for payload in declarations("f4", ("a", "b")):
        data.feed(payload)

    def feed() -> None:
        for step in range(3000):
            data.feed(block(np.array([step]), np.array([[step, step]], "f4"), "f4"))

    thread = threading.Thread(target=feed)
    thread.start()
    while thread.is_alive():
        for _, steps, values in data.series("a"):
            np.testing.assert_array_equal(steps, values)
    thread.join()
    assert data.last_step == 2999
