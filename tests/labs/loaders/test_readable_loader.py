"""Samples and batches are those that the loader would deliver, and reading them changes nothing."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset

from clew.labs.loaders.readable_loader import readable_loader
from clew.labs.snapshot.dataset_stages import COLLATE, FUNCTION, METHOD, READ, TRANSFORM
from clew.records.errors import CannotRead


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, value):
        for transform in self.transforms:
            value = transform(value)
        return value


class Double:
    def __call__(self, value):
        return value * 2


class Jitter:
    def __call__(self, value):
        return value + torch.rand(1) + random.random() + np.random.rand()


def shifted(value):
    return value + 1


class Rows(Dataset):
    def __init__(self, transform=None):
        self.rows = torch.arange(40.0).reshape(20, 2)
        self.transform = transform
        self.generator = torch.Generator().manual_seed(3)
        self.reads = []

    def __len__(self):
        return len(self.rows)

    def load(self, index):
        self.reads.append(index)
        return self.rows[index]

    def __getitem__(self, index):
        value = shifted(self.load(index))
        return self.transform(value) if self.transform else value, index % 3


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(10.0))


def told(readable, index=3):
    calls = []
    with readable.reading(), readable.following(calls.append):
        sample = readable.sample(index)
    return sample, calls


def states():
    return torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()


def test_samples_and_batches_are_those_of_the_loader():
    loader = DataLoader(Rows(Double()), batch_size=4)
    readable = readable_loader(loader)
    with readable.reading():
        batches = list(readable.batches())
        sample, label = readable.sample(7)
    for own, theirs in zip(batches, loader, strict=True):
        assert torch.equal(own[0], theirs[0])
        assert torch.equal(own[1], theirs[1])
    assert torch.equal(sample, (Rows().rows[7] + 1) * 2)
    assert label == 1


def test_reading_leaves_generators_attributes_and_the_dataset_as_they_were():
    dataset = Rows(Jitter())
    loader = DataLoader(dataset, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(1))
    before, held = states(), [g.get_state().tolist() for g in (dataset.generator, loader.generator)]
    readable = readable_loader(loader)
    with readable.reading():
        assert len(list(readable.batches())) == 5
        list(readable.indices())
        list(readable.bare_loader())
    assert states() == before
    assert [g.get_state().tolist() for g in (dataset.generator, loader.generator)] == held
    assert dataset.reads == []


def test_a_dataset_that_can_not_be_copied_is_put_back():
    dataset = Rows()
    dataset.handle = open(__file__)  # noqa: SIM115 - a file can't be copied
    try:
        readable = readable_loader(DataLoader(dataset))
        with readable.reading():
            readable.sample(1)
            assert dataset.reads == [1]
        assert dataset.reads == []
        assert "can't be copied" in readable.note
    finally:
        dataset.handle.close()


def test_a_stream_that_can_not_be_copied_is_not_read_a_second_time():
    class Taken(IterableDataset):
        def __init__(self):
            self.rows = iter(range(5))
            self.lock = open(__file__)  # noqa: SIM115 - a file can't be copied

        def __iter__(self):
            return self.rows

    dataset = Taken()
    try:
        readable = readable_loader(DataLoader(dataset))
        with readable.reading(), pytest.raises(CannotRead, match="take samples away"):
            next(readable.samples())
        assert list(dataset) == [0, 1, 2, 3, 4]
    finally:
        dataset.lock.close()


def test_every_stage_is_told_of_with_its_own_time():
    readable = readable_loader(
        DataLoader(Subset(Rows(Compose([Double(), shifted])), range(5, 15)), batch_size=4)
    )
    (sample, _), calls = told(readable)
    names = [(call.stage.name, call.stage.kind, call.depth) for call in calls]
    assert names == [
        ("Rows.load", METHOD, 2),
        ("shifted", FUNCTION, 2),
        ("Double", TRANSFORM, 2),
        ("shifted", TRANSFORM, 2),
        ("Rows.__getitem__", READ, 1),
        ("Subset.__getitem__", READ, 0),
    ]
    assert torch.equal(calls[2].result, (Rows().rows[8] + 1) * 2)
    assert torch.equal(sample, calls[3].result)
    assert calls[-1].own <= calls[-1].seconds


def test_following_ends_without_a_trace():
    readable = readable_loader(DataLoader(Rows(nn.Sequential(nn.Identity(), nn.Flatten(0)))))
    before = [stage.name for stage in readable.stages]
    _, calls = told(readable)
    assert [c.stage.name for c in calls if c.stage.kind == TRANSFORM] == ["Identity", "Flatten"]
    assert [stage.name for stage in readable.stages] == before
    assert shifted.__name__ == "shifted"
    assert "load" not in vars(readable.parts().dataset)


def test_stages_pass_for_what_they_stand_in_for():
    class Picky(Rows):
        def __getitem__(self, index):
            assert isinstance(self.transform, Double)
            return super().__getitem__(index)

    (sample, _), calls = told(readable_loader(DataLoader(Picky(Double()))))
    assert "Double" in [call.stage.name for call in calls]
    assert torch.equal(sample, (Rows().rows[3] + 1) * 2)


def test_a_plain_list_of_functions_is_a_chain_of_stages():
    class Chained(Rows):
        def __init__(self):
            super().__init__()
            self.steps = [Double(), shifted]

        def __getitem__(self, index):
            value = self.load(index)
            for step in self.steps:
                value = step(value)
            return value

    sample, calls = told(readable_loader(DataLoader(Chained())))
    assert [c.stage.name for c in calls if c.stage.kind == TRANSFORM] == ["Double", "shifted"]
    assert torch.equal(sample, Rows().rows[3] * 2 + 1)


def test_the_parts_of_a_concatenation_are_stages():
    readable = readable_loader(DataLoader(ConcatDataset([Rows(), Rows(Double())])))
    _, calls = told(readable, 23)
    assert [c.stage.name for c in calls if c.stage.kind == READ] == [
        "Rows.__getitem__",
        "ConcatDataset.__getitem__",
    ]
    assert readable.stages[-1].kind == COLLATE


def test_a_loader_of_our_own_may_have_other_settings():
    loader = DataLoader(Rows(), batch_size=4, num_workers=2, persistent_workers=True, prefetch_factor=3)
    readable = readable_loader(loader)
    with readable.reading():
        bare = readable.bare_loader()
        assert (bare.num_workers, bare.persistent_workers, bare.prefetch_factor) == (0, False, None)
        assert len(list(bare)) == 5
    assert (loader.num_workers, loader.persistent_workers, loader.prefetch_factor) == (2, True, 3)


def test_datasets_without_a_loader_streams_and_lists_of_batches_can_be_read():
    plain, stream, batches = (
        readable_loader(Rows()),
        readable_loader(DataLoader(Stream(), batch_size=4)),
        readable_loader([torch.ones(2, 3)]),
    )
    plain.batch_size = 8
    with plain.reading(), stream.reading():
        assert [len(batch[0]) for batch in plain.batches()] == [8, 8, 4]
        assert [float(s) for s in stream.samples()] == [float(n) for n in range(10)]
        assert stream.sample(4) == 4
        assert [len(batch) for batch in stream.batches()] == [4, 4, 2]
        assert [b.shape for b in batches.batches()] == [(2, 3)]
        with pytest.raises(CannotRead):
            batches.sample(0)
        with pytest.raises(CannotRead):
            stream.batch([0])


def test_what_is_no_data_is_refused():
    for wrong in (3, "train", []):
        with pytest.raises(CannotRead):
            readable_loader(wrong)
