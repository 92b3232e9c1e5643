from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_runs import append_payloads, block, declarations, new_run, write_segment

from clew.records.site import Site
from clew.store.index import index_cache, index_layout, ingest
from clew.store.index.series_index import Envelope, Index, site_key
from clew.store.read.run_data import RunData
from clew.store.write.frames import encode_json

M0 = site_key(Site(module="m0"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(index_layout, "NARROW_ROWS", 64)  # small chunks: many of them in a small test
    monkeypatch.setattr(index_layout, "WIDE_ROWS", 32)


@contextmanager
def a_run():
    with tempfile.TemporaryDirectory() as folder:
        yield new_run(Path(folder))


def series(seed: int, rows: int, columns: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Steps that repeat and skip, values with spikes, NaN and infinities."""
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.integers(0, 4, rows))
    values = rng.normal(size=(rows, columns))
    for bad in (np.nan, np.inf, -np.inf, 1e6):
        values[rng.random((rows, columns)) < 0.02] = bad
    values[rows // 3 : rows // 2] = np.nan if seed % 3 == 0 else values[rows // 3 : rows // 2]
    return steps, values


def assert_exact(found: Envelope, steps: np.ndarray, values: np.ndarray, limit: int) -> None:
    """The buckets cut the points into neighbours, each with its exact extremes."""
    assert found.counts.sum() == len(steps)
    assert len(found.steps) <= limit
    if len(steps) <= limit:
        np.testing.assert_array_equal(found.mins, values)
        np.testing.assert_array_equal(found.maxs, values)
    starts = np.cumsum(found.counts) - found.counts
    for i, (start, count) in enumerate(zip(starts, found.counts, strict=True)):
        part = values[start : start + count]
        finite = part[np.isfinite(part)]
        assert found.steps[i] == steps[start]
        assert found.bad[i] == count - len(finite)
        if len(finite):
            assert (found.mins[i], found.maxs[i]) == (finite.min(), finite.max())
            np.testing.assert_allclose(found.means()[i], finite.mean(), rtol=1e-9, atol=1e-9)
        elif len(steps) > limit:
            assert np.isnan(found.mins[i])
            assert np.isnan(found.maxs[i])


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 9000),
    st.lists(
        st.tuples(st.floats(-0.1, 1.1), st.floats(-0.1, 1.1), st.integers(1, 700)), min_size=5, max_size=5
    ),
)
def test_every_zoom_equals_the_naive_answer(seed, rows, zooms):
    steps, values = series(seed, rows)
    with a_run() as run:
        write_segment(run, [*declarations(), block(steps, values)])
        index = Index(run)
        index.refresh()
        assert_exact(index.query("loss", max_points=300), steps, values[:, 0], 300)
        for a, b, limit in zooms:
            lo, hi = (int(x * steps[-1]) for x in sorted((a, b)))
            inside = (steps >= lo) & (steps <= hi)
            found = index.query("loss", M0, lo, hi, limit)
            assert_exact(found, steps[inside], values[inside, 0], limit)
        index.close()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 700), min_size=1, max_size=12),
    st.sampled_from(["f8", "f4", "u1"]),
)
def test_an_index_built_bit_by_bit_equals_one_built_at_once(seed, sizes, dtype):
    steps, values = series(seed, sum(sizes), 40)
    values = np.nan_to_num(values, posinf=9, neginf=0).clip(0, 255).astype("u1") if dtype == "u1" else values
    values = values.astype(dtype)
    cuts = np.cumsum(sizes)[:-1]
    with a_run() as run:
        segment = write_segment(run, declarations(dtype, ("a", "b"), 20))
        grown = Index(run)
        for part, rows in zip(np.split(steps, cuts), np.split(values, cuts), strict=True):
            append_payloads(segment, [block(part, rows, dtype)])
            assert grown.refresh()
        answers = [grown.query(name, key, 5, int(steps[-1]) - 3, 60) for name in "ab" for key in keys(grown)]
        grown.close()
        index_cache.remove_cache(index_cache.cache_file(run, run.name))
        fresh = Index(run)
        fresh.refresh()
        again = [fresh.query(name, key, 5, int(steps[-1]) - 3, 60) for name in "ab" for key in keys(fresh)]
        fresh.close()
        for mine, theirs in zip(answers, again, strict=True):
            for one, other in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(one, other)
        inside = (steps >= 5) & (steps <= steps[-1] - 3)
        assert_exact(again[20 + 17], steps[inside], values[inside, 17 * 2 + 1].astype(float), 60)


def keys(index: Index) -> list[str]:
    return [site_key(Site(module=f"m{i}")) for i in range(20)]


def test_one_spike_among_many_points_is_seen_at_every_zoom(tmp_path):
    run = new_run(tmp_path)
    steps, values = np.arange(200_000), np.zeros((200_000, 1))
    values[123_456] = 7.0
    write_segment(run, [*declarations(), block(steps, values)])
    index = Index(run)
    index.refresh()
    for limit in (1, 10, 333, 5000):
        for lo, hi in ((None, None), (0, 123_456), (123_456, 199_999), (123_000, 124_000)):
            assert index.query("loss", None, lo, hi, limit).maxs.max() == 7.0
    assert index.query("loss", None, 123_457, None, 100).maxs.max() == 0.0
    index.close()


def test_large_intakes_are_stored_in_several_goes_and_stay_exact(tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "PENDING_BYTES", 5000)
    run = new_run(tmp_path)
    steps, values = series(1, 5000)
    rows = [block(steps[i : i + 130], values[i : i + 130]) for i in range(0, 5000, 130)]
    write_segment(run, [*declarations(), *rows])
    index = Index(run)
    index.refresh()
    assert_exact(index.query("loss", max_points=77), steps, values[:, 0], 77)
    index.close()


def test_the_index_agrees_with_the_reader_when_steps_went_back(tmp_path):
    run = new_run(tmp_path)
    steps, values = series(5, 300)
    first = [*declarations(), block(steps, values)]
    write_segment(run, first)
    index = Index(run)
    index.refresh()
    second = [*declarations(), block(steps, values + 1)]
    write_segment(run, second, number=2)
    index.refresh()
    data = RunData()
    for payload in first + second:
        data.feed(payload)
    ((_, wanted_steps, wanted),) = data.series("loss")
    found = index.query("loss", max_points=10_000)
    np.testing.assert_array_equal(found.steps, wanted_steps)
    np.testing.assert_array_equal(found.mins, wanted)
    coarse = index.query("loss", max_points=50)
    assert len(coarse.steps) <= 50
    assert coarse.counts.sum() == 600
    assert np.nanmax(coarse.maxs) == wanted[np.isfinite(wanted)].max()
    index.close()


def test_ranks_are_kept_apart(tmp_path):
    run = new_run(tmp_path)
    for rank in (0, 3):
        write_segment(run, [*declarations(), block(np.arange(5), np.full((5, 1), float(rank)))], rank=rank)
    index = Index(run)
    index.refresh()
    assert [(name.signal, name.site.module, name.rank) for name in index.series_names()] == [
        ("loss", "m0", 0),
        ("loss", "m0", 3),
    ]
    assert set(index.query("loss").mins) == {0.0}
    assert set(index.query("loss", rank=3).mins) == {3.0}
    index.close()


@pytest.mark.parametrize(("signal", "key"), [("nothing", None), ("loss", "{}"), ("", "")])
def test_asking_for_what_is_not_there_gives_an_empty_answer(tmp_path, signal, key):
    run = new_run(tmp_path)
    write_segment(run, [*declarations(), block(np.arange(5), np.zeros((5, 1)))])
    index = Index(run)
    index.refresh()
    assert len(index.query(signal, key).steps) == 0
    assert len(index.query("loss", None, 10, 5).steps) == 0
    index.close()


def only_cache_file() -> Path:
    (file,) = Path(os.environ["CLEW_CACHE"]).glob("index/*.sqlite")
    return file


def garbage(file: Path) -> None:
    file.write_bytes(os.urandom(5000))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip_values(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for at in range(len(content) // 2, len(content), 997):
        content[at] ^= 255
    file.write_bytes(bytes(content))


def other_version(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("UPDATE info SET version = 999")
    db.close()


def lost_chunks(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("DELETE FROM chunks WHERE level = 1")
    db.close()


def lost_table(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("DROP TABLE series")
    db.close()


@pytest.mark.parametrize(
    "harm", [garbage, cut, flip_values, other_version, lost_chunks, lost_table, os.unlink]
)
def test_a_spoilt_cache_is_built_again_and_answers_right(tmp_path, harm):
    run = new_run(tmp_path)
    steps, values = series(2, 5000)
    write_segment(run, [*declarations(), block(steps, values)])
    index = Index(run)
    index.refresh()
    index.close()
    harm(only_cache_file())
    again = Index(run)
    again.refresh()
    assert_exact(again.query("loss", max_points=100), steps, values[:, 0], 100)
    assert_exact(again.query("loss", max_points=10_000), steps, values[:, 0], 10_000)
    again.close()


def test_a_single_flipped_byte_in_a_cached_value_is_noticed(tmp_path):
    run = new_run(tmp_path)
    steps, values = np.arange(500), np.random.default_rng(0).normal(size=(500, 1))
    write_segment(run, [*declarations(), block(steps, values)])
    index = Index(run)
    index.refresh()
    index.close()
    file = only_cache_file()
    content = bytearray(file.read_bytes())
    content[content.index(values[:3].tobytes()) + 3] ^= 1
    file.write_bytes(bytes(content))
    again = Index(run)
    assert_exact(again.query("loss"), steps, values[:, 0], 2000)
    again.close()


def test_a_log_that_was_replaced_is_indexed_anew(tmp_path):
    run = new_run(tmp_path)
    write_segment(run, [*declarations(), block(np.arange(100), np.zeros((100, 1)))])
    index = Index(run)
    index.refresh()
    write_segment(run, [*declarations(), block(np.arange(10), np.ones((10, 1)))])
    index.refresh()
    assert index.query("loss").mins.tolist() == [1.0] * 10
    index.close()


def test_without_a_place_for_the_cache_the_index_lives_in_memory(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "file"))
    run = new_run(tmp_path)
    write_segment(run, [*declarations(), block(np.arange(5), np.ones((5, 1)))])
    index = Index(run)
    assert index.refresh()
    assert len(index.query("loss").steps) == 5
    index.close()


def test_two_viewers_share_one_cache(tmp_path):
    run = new_run(tmp_path)
    steps, values = series(4, 3000)
    segment = write_segment(run, declarations())
    viewers = [Index(run), Index(run)]
    for i in range(0, 3000, 300):
        append_payloads(segment, [block(steps[i : i + 300], values[i : i + 300])])
        assert viewers[(i // 300) % 2].refresh()
    for viewer in viewers:
        viewer.refresh()
        assert_exact(viewer.query("loss", max_points=50), steps, values[:, 0], 50)
        viewer.close()


def test_a_refresh_gives_way_to_another_viewer(tmp_path, monkeypatch):
    monkeypatch.setattr(index_cache, "BUSY_SECONDS", 0.01)
    run = new_run(tmp_path)
    write_segment(run, [*declarations(), block(np.arange(5), np.ones((5, 1)))])
    index, other = Index(run), Index(run)
    with index_cache.transaction(other._db):
        assert not index.refresh()
    assert index.refresh()
    index.close()
    other.close()


def test_records_that_make_no_sense_are_passed_over(tmp_path):
    run = new_run(tmp_path)
    nonsense = [
        b"Jx",
        b"B",
        encode_json({"t": "table", "id": 0, "dtype": "f8", "signals": ["a"], "sites": [9]}),
    ]
    write_segment(run, [*declarations(), *nonsense, block(np.arange(5), np.ones((5, 1)))])
    index = Index(run)
    index.refresh()
    assert index.query("loss").steps.tolist() == [0, 1, 2, 3, 4]
    index.close()


def test_an_index_long_unused_is_removed(tmp_path):
    run = new_run(tmp_path)
    write_segment(run, declarations())
    Index(run).close()
    old = only_cache_file()
    os.utime(old, (1, 1))
    other = new_run(tmp_path)
    write_segment(other, declarations())
    Index(other).close()
    assert not old.exists()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4000), st.integers(1, 40), st.integers(1, 200))
def test_all_sites_at_once_equal_the_naive_answer(seed, rows, sites, limit):
    steps, values = series(seed, rows, sites)
    with a_run() as run:
        write_segment(run, [*declarations(sites=sites), block(steps, values)])
        index = Index(run)
        index.refresh()
        (stretch,) = index.wide("loss", max_points=limit)
        index.close()
    found = stretch.envelope
    assert stretch.sites == [site_key(Site(module=f"m{n}")) for n in range(sites)]
    assert len(found.steps) <= limit
    finite = np.where(np.isfinite(values), values, np.nan)
    edges = np.r_[0, np.cumsum(found.counts[:, 0])]
    assert edges[-1] == rows
    for i, (start, end) in enumerate(pairwise(edges)):
        part = finite[start:end]
        assert found.steps[i] == steps[start]
        np.testing.assert_array_equal(found.mins[i], np.fmin.reduce(part))
        np.testing.assert_array_equal(found.maxs[i], np.fmax.reduce(part))
        np.testing.assert_array_equal(found.bad[i], np.isnan(part).sum(axis=0))
        np.testing.assert_allclose(found.sums[i], np.nansum(part, axis=0), rtol=1e-9, atol=1e-9)


def test_parts_are_told_once_and_extents_say_how_far_they_go():
    with a_run() as run:
        segment = write_segment(run, [*declarations(sites=2), block(np.arange(3, 8), np.ones((5, 2)))])
        index = Index(run)
        index.refresh()
        row, parts = index.parts()
        assert [part.site_key for part in parts] == [M0, site_key(Site(module="m1"))]
        assert list(index.extents().values()) == [(5, 3, 7)]
        append_payloads(segment, [block(np.arange(8, 10), np.ones((2, 2)))])
        index.refresh()
        assert index.parts(row) == (row, [])
        assert list(index.extents().values()) == [(7, 3, 9)]
        index.close()
