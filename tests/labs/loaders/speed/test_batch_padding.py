"""Padding in batches of sequences: exact where lengths are known, not reported where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from clew.labs.loaders.readable_loader import readable_loader
from clew.labs.loaders.speed.batch_padding import bucketed, paddings
from clew.labs.loaders.speed.speed_measurement import measure
from clew.labs.loaders.speed.stage_times import TimedLot
from clew.records.loader_speed import Padding

LENGTHS = [10, 20, 30, 40, 12, 22, 32, 42]


def words(length: int, seed: int = 0) -> Tensor:
    return torch.randint(1, 50, (length,), generator=torch.Generator().manual_seed(seed + length))


def lot(lengths: list[int], extra: Any = None, to: int | None = None) -> TimedLot:
    """A batch of sentences, with what else a loader gives along."""
    rows = [words(n) for n in lengths]
    batch = pad_sequence(rows, batch_first=True)
    if to is not None:
        batch = torch.nn.functional.pad(batch, (0, to - batch.shape[1]))
    return TimedLot([], {"ids": batch, **(extra or {})})


def only(lots: list[TimedLot]) -> Padding:
    found = paddings(lots)
    assert len(found.fields) == 1
    return found.fields[0]


def test_the_share_is_exact_for_known_lengths() -> None:
    found = only([lot(LENGTHS[:4]), lot(LENGTHS[4:])])
    assert found.field == "ids"
    assert found.how == "pad value 0"
    assert found.share == pytest.approx(1 - sum(LENGTHS) / (4 * 40 + 4 * 42))
    assert found.low == pytest.approx(1 - 108 / 168)
    assert found.high == pytest.approx(1 - 100 / 160)
    assert found.longest == pytest.approx(found.share)
    assert (found.shortest_length, found.longest_length, found.median_length) == (10, 42, 26)
    assert found.padded_to == 41


def test_like_lengths_together_save_what_they_say() -> None:
    found = only([lot(LENGTHS[:4]), lot(LENGTHS[4:])])
    ordered = sorted(LENGTHS)
    best = 1 - sum(LENGTHS) / (4 * max(ordered[:4]) + 4 * max(ordered[4:]))
    assert found.bucketed == pytest.approx(best)
    assert found.saves(found.bucketed) == pytest.approx(1 - (4 * 22 + 4 * 42) / (4 * 40 + 4 * 42))


def test_padding_to_a_fixed_length_is_told_from_padding_to_the_longest() -> None:
    found = only([lot(LENGTHS[:4], to=100), lot(LENGTHS[4:], to=100)])
    assert found.padded_to == 100
    assert found.share == pytest.approx(1 - sum(LENGTHS) / 800)
    assert found.longest == pytest.approx(1 - sum(LENGTHS) / (4 * 40 + 4 * 42))


def test_a_mask_tells_the_lengths_whatever_the_filler_is() -> None:
    mask = torch.arange(40)[None, :] < torch.tensor(LENGTHS[:4])[:, None]
    rows = torch.randint(0, 3, (4, 40))  # zeros stand everywhere
    for given in (mask.long(), mask, (~mask).long(), mask.flip(1).long()):
        found = only([TimedLot([], {"ids": rows, "attention_mask": given})] * 3)
        assert found.how == "attention_mask"
        assert found.share == pytest.approx(1 - 100 / 160)


def test_a_mask_that_hides_in_every_row_is_read_by_its_name() -> None:
    mask = (torch.arange(40)[None, :] < torch.tensor([10, 20, 30, 20])[:, None]).long()
    rows = torch.randint(0, 3, (4, 40))
    for name, given in (("attention_mask", mask), ("key_padding_mask", 1 - mask)):
        found = only([TimedLot([], {"ids": rows, name: given})] * 3)
        assert found.share == pytest.approx(0.5)


def test_a_mask_of_holes_is_none_of_padding() -> None:
    holes = torch.randint(0, 2, (4, 40))
    assert paddings([TimedLot([], {"ids": torch.randint(0, 3, (4, 40)), "mask": holes})]).fields == ()


def test_a_field_of_lengths_tells_them() -> None:
    frames = torch.randn(4, 40, 5)
    found = only([TimedLot([], {"frames": frames, "lengths": torch.tensor(LENGTHS[:4])})] * 3)
    assert (found.field, found.how) == ("frames", "lengths")
    assert found.share == pytest.approx(1 - 100 / 160)


def test_samples_of_different_lengths_tell_them_on_any_axis() -> None:
    waves = [torch.randn(1, n) for n in (100, 300)]
    batch = torch.stack([torch.nn.functional.pad(w, (0, 300 - w.shape[1])) for w in waves])
    shapes = [{"0": tuple(w.shape), "1": ()} for w in waves]
    found = only([TimedLot(shapes, [batch, torch.tensor([0, 1])])])
    assert (found.axis, found.how) == (2, "samples")
    assert found.share == pytest.approx(1 - 400 / 600)


def test_frames_of_zeros_at_the_end_are_filler() -> None:
    lengths = [20, 25, 30, 35, 40, 22, 27, 33]
    rows = [torch.randn(n, 4) for n in lengths]
    found = only([TimedLot([], pad_sequence(rows, batch_first=True))])
    assert found.share == pytest.approx(1 - sum(lengths) / (8 * 40))


def digits() -> Tensor:
    """Pictures with dark borders."""
    made = torch.zeros(16, 28, 28)
    made[:, 5:20, 4:24] = torch.rand(16, 15, 20)
    return made


@pytest.mark.parametrize(
    "batch",
    [
        digits(),
        digits().unsqueeze(1),
        torch.rand(16, 30),
        torch.randint(0, 2, (16, 30)),  # marks: a row may end in zeros
        torch.nn.functional.one_hot(torch.randint(0, 30, (16,)), 30),
        (torch.rand(16, 30) > 0.9).float(),
        torch.zeros(16, 30),
        torch.randint(0, 9, (16,)),
        torch.randint(1, 50, (16, 40)),  # sentences of one length
        np.eye(16, 64),
    ],
)
def test_what_is_no_padded_sequence_is_not_called_one(batch: Any) -> None:
    assert paddings([TimedLot([], (batch, torch.randint(0, 9, (16,))))] * 3).fields == ()


def test_rows_of_text_and_other_things_are_left_alone() -> None:
    assert paddings([TimedLot([], {"text": ["a", "bc"], "n": 3, "none": None})]).fields == ()
    assert paddings([]).batches == 0


def test_batches_of_one_length_waste_nothing() -> None:
    assert bucketed([7] * 100, 8) == 0.0
    assert bucketed([], 8) == 0.0


class Sentences(Dataset[Tensor]):
    def __len__(self) -> int:
        return len(LENGTHS)

    def __getitem__(self, index: int) -> Tensor:
        return words(LENGTHS[index], index)


def test_a_whole_measurement_finds_the_padding_of_a_loader() -> None:
    def gather(samples: list[Tensor]) -> dict[str, Tensor]:
        return {"ids": pad_sequence(samples, batch_first=True)}

    found = measure(readable_loader(DataLoader(Sentences(), batch_size=4, collate_fn=gather)), seconds=2.0)
    assert found.paddings is not None
    padding = found.paddings.fields[0]
    assert padding.share == pytest.approx(1 - sum(LENGTHS) / (4 * 40 + 4 * 42))
