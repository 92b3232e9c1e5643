"""Checks of speed on what `clew data` measured: slow loaders, their settings, and heavy samples."""

from __future__ import annotations

from dataclasses import replace

from fake_run import FakeRun, findings

from clew.checks.base import Check
from clew.checks.perf.large_sample_transfer import LargeSampleTransfer
from clew.checks.perf.loader_worker_count import LoaderWorkerCount
from clew.checks.perf.slow_loader import SlowLoader
from clew.records.facts.loader_facts import measured_facts
from clew.records.finding import Finding, Severity
from clew.records.loader_speed import (
    FieldSize,
    MeasuredLoader,
    Moving,
    Rate,
    Sizes,
    Speeds,
    Stages,
    StageTime,
    Sweep,
    SweepRow,
)

SPEEDS = Speeds(Rate(100), Rate(1000), Rate(90), "training step", batch=32, wait=0.9, workers=2)
STAGES = Stages(
    (
        StageTime("Photos.__getitem__", median=1e-3, share=0.1),
        StageTime("RandomRotation", "transform", 8e-3, 9e-3, 0.8, file="photos.py", line=40),
    ),
    64,
    10e-3,
)
SIZES = Sizes(
    (FieldSize("scan", (2000, 2000), "int64", 32e6, "uint8", 4e6, "whole numbers 0 to 199"),),
    16,
    32e6,
    32e6,
    Moving(64e6, 20.0, 0.1, 2),
    workers=2,
)


def judged(check: Check, measured: MeasuredLoader) -> list[Finding]:
    run = FakeRun()
    for fact in measured_facts(measured):
        run.fact(fact.fact_kind, 0, **fact.to_json())
    return findings(check, run)


def made(**parts: object) -> MeasuredLoader:
    return replace(MeasuredLoader("train_loader", "train.py", 12), **parts)  # type: ignore[arg-type]


# -- slow-loader --


def test_a_loader_that_limits_is_named_with_its_slowest_stage() -> None:
    [found] = judged(SlowLoader(), made(speeds=SPEEDS, stages=STAGES))
    assert found.severity is Severity.WARNING
    assert (
        found.message
        == "training waits for data 90% of the time; RandomRotation takes 80% of a sample's time"
    )
    assert (found.site.file, found.site.line) == ("photos.py", 40)
    assert "RandomRotation" in found.fix


def test_a_loader_without_workers_is_advised_to_use_them() -> None:
    [found] = judged(SlowLoader(), made(speeds=replace(SPEEDS, workers=0)))
    assert "num_workers" in found.fix
    assert (found.site.file, found.site.line) == ("train.py", 12)


def test_workers_that_were_tried_in_vain_are_not_advised() -> None:
    tried = replace(SWEEP, best_workers=0, best_prefetch=0, gain=0.0)
    [found] = judged(SlowLoader(), made(speeds=replace(SPEEDS, workers=0), stages=STAGES, sweep=tried))
    assert "num_workers" not in found.fix


def test_a_loader_that_keeps_up_is_not_slow() -> None:
    assert judged(SlowLoader(), made(speeds=replace(SPEEDS, loader=Rate(2000), wait=0.3))) == []
    assert judged(SlowLoader(), made(speeds=replace(SPEEDS, wait=0.49))) == []


def test_batches_that_take_no_time_are_no_matter() -> None:
    small = replace(SPEEDS, loader=Rate(10000), model=Rate(100000), both=Rate(9000))
    assert judged(SlowLoader(), made(speeds=small)) == []


def test_a_forward_alone_says_nothing_of_training() -> None:
    assert judged(SlowLoader(), made(speeds=replace(SPEEDS, step="forward"))) == []


# -- loader-worker-count --

SWEEP = Sweep(
    (SweepRow(0, 0, Rate(100)), SweepRow(2, 2, Rate(180)), SweepRow(4, 2, Rate(185))),
    best_workers=2,
    best_prefetch=2,
    with_step=True,
    gain=1 - 100 / 180,
    cores=4,
)


def test_a_better_setting_is_named_with_its_measured_gain() -> None:
    [found] = judged(LoaderWorkerCount(), made(sweep=SWEEP))
    assert "1.80x" in found.message
    assert found.fix == "DataLoader(..., num_workers=2, persistent_workers=True)"
    assert found.severity is Severity.WARNING


def test_prefetching_is_named_where_it_is_not_the_default() -> None:
    swept = replace(SWEEP, rows=(*SWEEP.rows, SweepRow(2, 8, Rate(200))), best_prefetch=8, gain=0.5)
    [found] = judged(LoaderWorkerCount(), made(sweep=swept))
    assert "num_workers=2, prefetch_factor=8" in found.fix


def test_small_or_unknown_gains_are_not_spoken_of() -> None:
    assert judged(LoaderWorkerCount(), made(sweep=replace(SWEEP, gain=0.04))) == []
    assert judged(LoaderWorkerCount(), made(sweep=replace(SWEEP, gain=None))) == []
    assert judged(LoaderWorkerCount(), made(sweep=replace(SWEEP, best_workers=0, best_prefetch=0))) == []


# -- large-sample-transfer --


def test_heavy_samples_in_a_wide_type_are_named() -> None:
    [found] = judged(LargeSampleTransfer(), made(speeds=SPEEDS, sizes=SIZES))
    assert "30.5 MiB per sample as int64 (scan), but uint8 would be enough" in found.message
    assert "uint8" in found.fix


def test_pictures_of_255ths_are_told_how_to_come_back() -> None:
    image = FieldSize("image", (3, 2000, 2000), "float32", 48e6, "uint8", 12e6, "multiples of 1/255")
    [found] = judged(
        LargeSampleTransfer(), made(speeds=SPEEDS, sizes=replace(SIZES, fields=(image,), bytes=48e6))
    )
    assert "/ 255" in found.fix


def test_nothing_is_said_of_samples_that_are_small_or_stay_in_the_process() -> None:
    small = replace(SIZES, bytes=1e3, fields=(replace(SIZES.fields[0], bytes=1e3, fits_bytes=125),))
    small = replace(small, moving=Moving(2e3, 0.0, 0.1, 2))
    assert judged(LargeSampleTransfer(), made(speeds=SPEEDS, sizes=small)) == []
    assert judged(LargeSampleTransfer(), made(speeds=SPEEDS, sizes=replace(SIZES, workers=0))) == []


def test_nothing_is_said_where_training_does_not_wait() -> None:
    assert judged(LargeSampleTransfer(), made(speeds=replace(SPEEDS, wait=0.01), sizes=SIZES)) == []
    assert judged(LargeSampleTransfer(), made(sizes=SIZES)) == []


def test_nothing_is_said_where_the_values_need_their_type() -> None:
    exact = replace(SIZES, fields=(replace(SIZES.fields[0], fits="", fits_bytes=0.0),))
    assert judged(LargeSampleTransfer(), made(speeds=SPEEDS, sizes=exact)) == []
