"""Throughput and memory against the size of a batch, and where the knee is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fake_step_clock import Costly, Counting, Ticks, classifier, everything, same
from torch import Tensor, nn

from clew.labs.profiler.step_experiments import batch_size_sweep
from clew.labs.profiler.step_experiments.batch_size_sweep import (
    StepPeak,
    batch_of_size,
    find_knee,
    predict_bytes,
    sweep,
)
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.tried_changes import BatchSizes, SizeRow

MIB = 2**20


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch):
    """Without torch's profiler: what a step holds is told by the size of its batch."""

    def held(runner: Any, variant: Any, batch: Any) -> StepPeak:
        return StepPeak(100 * MIB + batch.size * MIB, batch.size * MIB, 500 * MIB)

    monkeypatch.setattr(batch_size_sweep, "memory_of_step", held)


def swept(subject: Subject, sizes: Sequence[int], **options: Any) -> BatchSizes:
    facts: list[tuple[str, dict[str, Any]]] = []
    options = {"now": Counting().now, "time_limit": 1e6, **options}
    found = sweep(subject, sizes, lambda fact: facts.append((fact.fact_kind, fact.to_json())), **options)
    assert [kind for kind, _ in facts] == ["batch_sizes"]
    assert BatchSizes.from_json(json.loads(json.dumps(facts[0][1]))) == found, "recorded as found"
    return found


def rows(throughputs: dict[int, float], spread: float = 0.01) -> list[SizeRow]:
    return [SizeRow(s, s / t, t, spread * t, 9) for s, t in throughputs.items()]


# ---- the knee ------------------------------------------------------------------------------


def test_the_knee_is_the_smallest_size_from_which_doubling_gains_little():
    curve = {8: 100.0, 16: 190.0, 32: 350.0, 64: 550.0, 128: 580.0, 256: 590.0}
    knee, why = find_knee(rows(curve))
    assert knee == 64
    assert "at most 7% more" in why
    assert "batches of 256" in why


def test_a_throughput_that_only_grows_has_no_knee():
    knee, why = find_knee(rows({8: 100.0, 16: 190.0, 32: 360.0}))
    assert knee is None
    assert "(32) is still faster" in why


def test_a_flat_curve_has_its_knee_at_the_start():
    knee, why = find_knee(rows({8: 100.0, 16: 101.0, 32: 99.0, 64: 90.0}))
    assert knee == 8
    assert "at most 1%" in why


def test_a_dip_before_a_rise_is_no_knee():
    assert find_knee(rows({8: 100.0, 16: 95.0, 32: 300.0, 64: 310.0}))[0] == 32


def test_sizes_that_are_no_doublings_are_judged_by_what_a_doubling_would_give():
    """From 8 to 128 are four doublings: 30% in all is 7% each."""
    assert find_knee(rows({8: 100.0, 128: 130.0}))[0] == 8
    assert find_knee(rows({8: 100.0, 16: 130.0}))[0] is None


def test_a_gain_within_noise_does_not_move_the_knee():
    curve = {8: 100.0, 16: 115.0, 32: 116.0}
    assert find_knee(rows(curve, spread=0.01))[0] == 16
    assert find_knee(rows(curve, spread=0.30))[0] == 8


def test_one_size_alone_has_no_knee():
    known = rows({8: 100.0})
    assert find_knee([*known, SizeRow(16, reason="the step fails")])[0] is None
    assert find_knee([])[0] is None


def test_what_larger_batches_need_is_foreseen_from_the_two_before():
    assert predict_bytes([], 8) is None
    assert predict_bytes([(4, 100)], 8) == 200
    assert predict_bytes([(4, 100), (8, 150)], 16) == 250


# ---- on a network --------------------------------------------------------------------------


def test_costs_of_a_call_and_of_a_sample_make_the_knee(light: None):
    """16 s for the call, 1 s a sample: doubling gains 10% up to batches of about 64."""
    clock = Ticks()
    model = nn.Sequential(Costly(clock, 16.0, 1.0), nn.Linear(4, 2))
    subject = classifier(model, (torch.randn(8, 4), torch.randint(2, (8,))))
    found = swept(subject, [4, 16, 64, 128, 256, 512], now=clock.now)
    assert [row.size for row in found.rows] == [4, 8, 16, 64, 128, 256, 512], "and the program's own"
    assert found.rows[0].throughput == pytest.approx(4 / 20)
    assert found.rows[-1].throughput == pytest.approx(512 / 528)
    assert found.knee == 128
    assert found.current == 8
    assert found.gain == pytest.approx((128 / 144) / (8 / 24) - 1)


def test_samples_are_joined_and_repeated_for_larger_batches():
    model = nn.Linear(2, 2)
    x = torch.arange(12.0).reshape(6, 2)
    loader = [(x[:3], torch.tensor([0, 1, 0])), (x[3:], torch.tensor([1, 1, 0]))]
    subject = classifier(model, loader)
    whole = batch_size_sweep._samples(subject)
    assert whole.size == 6
    inputs, targets = batch_of_size(whole, 8).tensors()
    assert torch.equal(inputs, torch.cat([x, x[:2]]))
    assert targets.tolist() == [0, 1, 0, 1, 1, 0, 0, 1]


def test_batch_normalisation_of_one_sample_is_reported_not_raised(light: None):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    found = swept(classifier(model, (torch.randn(8, 4), torch.randint(4, (8,)))), [1, 2, 4])
    assert not found.rows[0].measured
    assert "Expected more than 1 value per channel" in found.rows[0].reason
    assert all(row.measured for row in found.rows[1:])


def test_sizes_that_would_not_fit_into_memory_are_not_tried(light: None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batch_size_sweep, "available", lambda: 100.0 * MIB)
    model = nn.Linear(4, 4)
    found = swept(classifier(model, (torch.randn(8, 4), torch.randint(4, (8,)))), [16, 64, 128])
    assert [row.measured for row in found.rows] == [True, True, True, False]
    assert found.rows[-1].reason == "it would need about 128 MiB, but only 100 MiB is free"


def test_what_does_not_fit_into_the_time_is_not_begun(light: None):
    clock = Ticks()
    model = nn.Sequential(Costly(clock, 0.0, 1.0), nn.Linear(4, 2))
    subject = classifier(model, (torch.randn(2, 4), torch.randint(2, (2,))))
    found = swept(subject, [4, 4000], now=clock.now, time_limit=300.0)
    assert [row.measured for row in found.rows] == [True, True, False]
    assert found.rows[-1].reason == "time limit reached"
    assert clock.time < 1000


class Tagger(nn.Module):
    """An LSTM that has its samples along the second dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(3, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.lstm(x)[0][-1])


class FromDictionary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(10, 4), nn.Linear(4, 2)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.out((self.embed(ids) * mask.unsqueeze(-1)).sum(1))


def images() -> Subject:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(72, 2))
    return classifier(model, (torch.randn(4, 1, 8, 8), torch.randint(2, (4,))))


def sequences() -> Subject:
    model = Tagger()
    x, y = torch.randn(5, 4, 3), torch.randint(2, (4,))
    subject = subject_of(model, None, (x, y), step=lambda b: F.cross_entropy(model(b[0]), b[1]))
    subject.batches = [replace(b, dims=(1, 0), size=4) for b in subject.batches]
    return subject


def dictionaries() -> Subject:
    batch = {
        "ids": torch.randint(10, (4, 6)),
        "mask": torch.ones(4, 6),
        "labels": torch.randint(2, (4,)),
    }
    return classifier(FromDictionary(), batch)


@pytest.mark.parametrize("make", [images, sequences, dictionaries])
def test_networks_of_all_kinds_are_measured_with_their_memory(make: Any):
    subject = make()
    found = swept(subject, [2, 8])
    assert found.reason == ""
    assert [row.size for row in found.rows] == [2, 4, 8]
    assert all(row.measured for row in found.rows), found.rows
    peaks = [row.peak for row in found.rows]
    assert 0 < peaks[0] < peaks[-1]
    assert all(row.process > MIB for row in found.rows)


def test_without_a_known_sample_dimension_it_is_said():
    subject = classifier(nn.Linear(2, 2), (torch.randn(4, 2), torch.randint(2, (4,))))
    subject.batches = [replace(b, dims=(None, None)) for b in subject.batches]
    found = swept(subject, [2, 4])
    assert found.reason == batch_size_sweep.NO_SAMPLES
    assert not found.rows


def test_a_step_that_can_not_be_made_again_says_why_and_what_to_do():
    subject = Subject({}, reasons={"step": "it is not known"}, hints={"step": "hand it over"})
    found = swept(subject, [2, 4])
    assert (found.reason, found.hint) == ("it is not known", "hand it over")


def test_everything_is_afterwards_as_it_was(light: None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    optimizer = torch.optim.Adam(model.parameters())
    subject = classifier(model, (torch.randn(8, 4), torch.randint(4, (8,))), optimizer)
    before = everything(model, optimizer)
    assert swept(subject, [1, 4, 16]).rows[-1].measured
    after = everything(model, optimizer)
    assert [name for name in before if not same(before[name], after[name])] == []
