"""Samples of every kind as a person sees them, before and after batching, and stage by stage."""

import math
import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

import clew
from clew.labs.loaders.loader_view import view_loader
from clew.labs.loaders.readable_loader import readable_loader
from clew.records.errors import CannotRead
from clew.records.sample_views import LoaderView


class Listed(Dataset):
    """Samples as they are given."""

    def __init__(self, *samples, **attributes):
        self.samples = samples
        vars(self).update(attributes)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


class Compose:
    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, value):
        for transform in self.transforms:
            value = transform(value)
        return value


class ToTensor:
    def __call__(self, picture):
        return torch.from_numpy(picture).permute(2, 0, 1).float() / 255


class Flip:
    def __call__(self, value):
        return value.flip(-1) if random.random() < 0.5 else value


class Fails:
    def __call__(self, value):
        raise ValueError("no such picture")


class Photos(Dataset):
    classes = ("cat", "dog")

    def __init__(self, *transforms):
        self.transform = Compose(*transforms)
        self.pictures = [np.full((16, 12, 3), 20 * n, dtype=np.uint8) for n in range(6)]
        for picture in self.pictures:
            picture[:, :6] += 100

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.transform(self.pictures[index]), index % 2


def test_pictures_come_with_their_labels_in_words():
    shown = view_loader(readable_loader(DataLoader(Photos(ToTensor()), batch_size=4)), 3)
    assert [(s.kind, s.title, s.label) for s in shown.samples] == [
        ("image", "sample 0", "0 (cat)"),
        ("image", "sample 1", "1 (dog)"),
        ("image", "sample 2", "0 (cat)"),
    ]
    assert shown.samples[1].data[0][0] == [120, 120, 120]
    assert shown.samples[1].data[0][11] == [20, 20, 20]
    assert [row.data for row in shown.rows] == [sample.data for sample in shown.samples]
    assert [(p.shape, p.dtype) for p in shown.batch] == [((4, 3, 16, 12), "float32"), ((4,), "int64")]
    assert shown.stages == ("Photos", "ToTensor", "default_collate")


def test_text_is_decoded_by_a_vocabulary_of_the_dataset_or_the_script():
    held = view_loader(
        readable_loader(Listed((torch.tensor([1, 0, 2]), 1), vocab={"a": 0, "the": 1, "dog": 2})), 1
    )
    assert (held.samples[0].kind, held.samples[0].data) == ("text", "the a dog")
    readable = readable_loader(DataLoader(Listed(torch.tensor([2, 0, 1])), batch_size=1))
    readable.scope = {"itos": {0: "x", 1: "y", 2: "z"}}
    assert view_loader(readable, 1).rows[0].data == "zxy"


def test_numbers_that_are_no_words_of_the_vocabulary_stay_numbers():
    shown = view_loader(
        readable_loader(Listed((torch.tensor([100, 200, 300]), 1), vocab={"a": 0, "the": 1})), 1
    )
    assert (shown.samples[0].kind, shown.samples[0].data) == ("numbers", [100, 200, 300])


def test_strings_are_shown_as_they_are():
    shown = view_loader(
        readable_loader(DataLoader(Listed(("good film", 1), ("bad film", 0)), batch_size=2)), 2
    )
    assert [(s.data, s.label) for s in shown.samples] == [("good film", "1"), ("bad film", "0")]
    assert [r.data for r in shown.rows] == ["good film", "bad film"]


def test_sound_is_a_wave_whose_peaks_are_kept_with_its_rate():
    wave = torch.sin(torch.arange(16000) / 8000 * 2 * math.pi * 100) * 0.1
    wave[4321] = 0.9
    shown = view_loader(readable_loader(Listed({"audio": wave, "label": 3}, sample_rate=8000)), 1)
    sample = shown.samples[0]
    assert (sample.kind, sample.label, sample.rate) == ("wave", "3", 8000)
    assert max(sample.data) == pytest.approx(0.9)
    assert len(sample.data) <= 400


def test_tables_are_rows_of_numbers_with_statistics():
    shown = view_loader(
        readable_loader(
            DataLoader(Listed(*[(torch.tensor([float(n), 2.0]), float(n)) for n in range(4)]), batch_size=4)
        ),
        4,
    )
    assert [(s.kind, s.data, s.label) for s in shown.samples[:2]] == [
        ("numbers", [0.0, 2.0], "0"),
        ("numbers", [1.0, 2.0], "1"),
    ]
    part = shown.batch[0]
    assert (part.low, part.high, part.mean) == (0.0, 3.0, 1.75)
    assert part.std == pytest.approx(float(torch.tensor([0, 1, 2, 3, 2, 2, 2, 2.0]).std(correction=0)))


def test_dictionaries_keep_the_names_of_their_fields():
    one = {"pixels": torch.ones(3, 8, 8), "meta": {"age": 3}, "label": 1}
    shown = view_loader(readable_loader(DataLoader(Listed(one, one), batch_size=2)), 2)
    assert [p.name for p in shown.samples[0].parts] == ["pixels", "meta.age", "label"]
    assert [p.name for p in shown.batch] == ["pixels", "meta.age", "label"]
    assert shown.rows[1].label == "1"


def test_a_stream_shows_its_first_samples():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter([(torch.full((3,), float(n)), n) for n in range(5)])

    shown = view_loader(readable_loader(DataLoader(Stream(), batch_size=2)), 3)
    assert [s.data for s in shown.samples] == [[0.0] * 3, [1.0] * 3, [2.0] * 3]
    assert [r.label for r in shown.rows] == ["0", "1"]


def test_a_sample_that_can_not_be_read_says_why_and_the_others_are_shown():
    class Broken(Listed):
        def __getitem__(self, index):
            if index == 1:
                raise OSError("truncated file")
            return super().__getitem__(index)

    shown = view_loader(
        readable_loader(DataLoader(Broken(torch.ones(2), torch.ones(2), torch.ones(2)), batch_size=3)), 3
    )
    assert [s.error for s in shown.samples] == ["", "OSError: truncated file", ""]
    assert shown.batch == ()
    assert "OSError: truncated file" in shown.notes[0]


def remarks(*samples, **settings) -> str:
    return " | ".join(
        view_loader(readable_loader(DataLoader(Listed(*samples), batch_size=2, **settings)), 2).remarks
    )


def test_unscaled_values_channels_last_and_casts_are_reported():
    picture = torch.arange(255.0).repeat(4)[: 16 * 16 * 3].reshape(16, 16, 3)
    assert "0 to 255" in remarks(picture, picture)
    assert "channels come last" in remarks(picture, picture)
    first = picture.permute(2, 0, 1) / 255
    assert "channels" not in remarks(first, first)
    assert "float64 into float32" in remarks(
        first.double(), first.double(), collate_fn=lambda some: torch.stack(some).float()
    )


def way(shown: LoaderView) -> list[tuple[str, str, bool]]:
    assert shown.way is not None
    return [(s.name, s.kind, s.random) for s in shown.way.stages]


def test_one_sample_is_seen_after_every_stage_with_the_random_ones_named():
    shown = view_loader(readable_loader(DataLoader(Photos(ToTensor(), Flip()), batch_size=4)), 0, sample=3)
    assert way(shown) == [
        ("as stored", "", False),
        ("ToTensor", "transform", False),
        ("Flip", "transform", True),
        ("Photos.__getitem__", "read", False),
        ("default_collate", "collate", False),
    ]
    assert shown.way is not None
    stored, tensor = shown.way.stages[:2]
    assert (stored.made.shape, stored.made.dtype, stored.made.high) == ((16, 12, 3), "uint8", 160.0)
    assert (tensor.made.shape, tensor.made.dtype) == ((3, 16, 12), "float32")
    assert tensor.view.kind == "image"
    assert shown.way.stages[-1].made.shape == (1, 3, 16, 12)


def test_the_random_stages_are_drawn_alike_every_time():
    datasets = [Photos(ToTensor(), Flip()) for _ in range(4)]
    drawn = [
        view_loader(readable_loader(DataLoader(d)), 0, sample=2).way.stages[2].view.data for d in datasets
    ]
    assert all(one == drawn[0] for one in drawn)


def test_a_stage_that_raises_ends_the_way_and_is_named():
    shown = view_loader(readable_loader(DataLoader(Photos(ToTensor(), Fails()))), 0, sample=0)
    assert shown.way is not None
    failed = next(s for s in shown.way.stages if s.name == "Fails")
    assert failed.error == "ValueError: no such picture"
    assert shown.way.error == "ValueError: no such picture"


def test_a_dataset_that_does_not_bear_looking_on_is_seen_from_its_end():
    class Strict(Photos):
        def __getitem__(self, index):
            assert type(self.transform.transforms[0]) is ToTensor
            return super().__getitem__(index)

    shown = view_loader(readable_loader(DataLoader(Strict(ToTensor()))), 0, sample=1)
    assert way(shown) == [("Strict", "read", False)]
    assert shown.way is not None
    assert shown.way.error == ""


def test_a_sample_beyond_the_end_is_refused_in_words():
    shown = view_loader(readable_loader(DataLoader(Photos(ToTensor()))), 0, sample=99)
    assert shown.way is not None
    assert shown.way.error == "there is no sample 99: the dataset has 6"


def test_the_report_of_a_call_prints_and_has_its_parts():
    report = clew.data(DataLoader(Photos(ToTensor()), batch_size=2), measure=False, judge=False, samples=2)
    assert len(report.samples) == 2
    assert report.speeds is None
    assert report.survey is None
    assert "Photos, 6 samples" in str(report)
    assert "data:image/png;base64," in report._repr_html_()
    assert len(report.show(4).samples) == 4
    assert "ToTensor" in str(report.sample(1))


def test_a_call_leaves_the_random_generators_alone():
    torch.manual_seed(1)
    random.seed(1)
    before = torch.get_rng_state().tolist(), random.getstate()
    loader = DataLoader(Photos(ToTensor(), Flip()), batch_size=2, shuffle=True)
    report = clew.data(loader, measure=False, judge=False)
    _ = str(report)
    assert (torch.get_rng_state().tolist(), random.getstate()) == before


def test_a_generator_of_batches_is_looked_at():
    report = clew.data((torch.ones(4, 2) * n for n in range(3)), measure=False, judge=False)
    assert report.loaders[0].batch[0].shape == (4, 2)


def test_what_is_no_data_is_refused_with_one_line():
    with pytest.raises(CannotRead, match="not int"):
        clew.data(3)
