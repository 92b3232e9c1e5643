"""Where the time of a sample goes, stage by stage, under the user's own names."""

from __future__ import annotations

import builtins
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageFile
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from clew.labs.loaders.readable_loader import readable_loader
from clew.labs.loaders.speed.speed_measurement import measure
from clew.labs.loaders.speed.stage_times import hot_lines, time_stages
from clew.labs.loaders.speed.worker_transfer import measure_transfer, piped_bytes
from clew.records.loader_speed import COLLATE, DATASET, DECODE, PICKLE, READ, TRANSFORM, Stages, StageTime


class Slow:
    def __call__(self, value: Tensor) -> Tensor:
        time.sleep(0.02)
        return value


class Quick:
    def __call__(self, value: Tensor) -> Tensor:
        time.sleep(0.0005)
        return value + 1


class Compose:
    def __init__(self, *transforms: Any) -> None:
        self.transforms = list(transforms)

    def __call__(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value


class Rows(Dataset[Tensor]):
    def __init__(self, transform: Any, count: int = 32) -> None:
        self.transform = transform
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Tensor:
        given: Tensor = self.transform(torch.full((4,), float(index)))
        return given


def stages(data: Any, seconds: float = 0.4, **settings: Any) -> Stages:
    readable = readable_loader(DataLoader(data, batch_size=4, **settings))
    with readable.reading():
        return time_stages(readable, seconds).times.result()


def named(found: Stages, name: str) -> StageTime:
    return next(stage for stage in found.stages if stage.name == name)


def test_the_slow_transform_is_named_with_its_share() -> None:
    data = Rows(Compose(Quick(), Slow(), Quick()))
    before = data.transform.transforms[:]
    found = stages(data)
    slow = named(found, "Slow")
    assert slow.kind == TRANSFORM
    assert slow.share > 0.3
    assert slow == max(found.stages, key=lambda stage: stage.share)
    assert slow.median > named(found, "Quick 1").median
    assert slow.file == __file__
    assert data.transform.transforms == before


def test_shares_add_up_and_stages_stand_in_their_order() -> None:
    found = stages(Rows(Compose(Quick(), Slow())))
    assert abs(sum(stage.share for stage in found.stages) - 1) < 1e-6
    assert [stage.name for stage in found.stages] == ["Rows.__getitem__", "Quick", "Slow", "default_collate"]
    assert found.stages[0].kind == DATASET
    assert found.stages[-1].kind == COLLATE
    assert found.median <= found.p95


def test_a_slow_collate_is_seen_per_sample() -> None:
    def gather(samples: list[Tensor]) -> Tensor:
        time.sleep(0.05)
        return torch.stack(samples)

    found = stages(Rows(Quick()), collate_fn=gather)
    assert named(found, "gather").share > 0.5
    assert named(found, "gather").median < 0.05  # a batch has four


def test_samples_that_raise_are_left_out_and_counted() -> None:
    class Holes(Rows):
        def __getitem__(self, index: int) -> Tensor:
            if index % 3 == 0:
                raise OSError(f"no file {index}")
            return super().__getitem__(index)

    readable = readable_loader(DataLoader(Holes(Quick(), 12), batch_size=4))
    with readable.reading():
        found = time_stages(readable, 5.0)  # or until all were seen
    assert found.failed == 4
    assert found.times.samples == 8
    assert found.error == "OSError: no file 9"


def test_an_iterable_dataset_has_stages_too() -> None:
    class Stream(IterableDataset[Tensor]):
        def __init__(self) -> None:
            self.transform = Slow()

        def __iter__(self) -> Iterator[Tensor]:
            for n in range(10):
                yield self.transform(torch.full((2,), float(n)))

    readable = readable_loader(DataLoader(Stream(), batch_size=4))
    with readable.reading():
        found = time_stages(readable, 5.0)  # or until all were seen
    assert found.times.samples == 10
    assert named(found.times.result(), "Slow").share > 0.5
    assert [len(lot.shapes) for lot in found.lots] == [4, 4, 2]


class Files(Dataset[Tensor]):
    def __init__(self, folder: Path, count: int = 8) -> None:
        self.paths = [folder / f"{n}.png" for n in range(count)]
        self.arrays = [folder / f"{n}.npy" for n in range(count)]
        for n, (path, array) in enumerate(zip(self.paths, self.arrays, strict=True)):
            pixels = np.random.default_rng(n).integers(0, 255, (64, 64, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(path)
            np.save(array, pixels)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Tensor:
        image = Image.open(self.paths[index]).convert("RGB")
        return torch.from_numpy(np.array(image) + np.load(self.arrays[index]))


def test_reading_and_decoding_of_files_are_told_apart(tmp_path: Path) -> None:
    originals = (builtins.open, Image.open, np.load, ImageFile.ImageFile.load)
    found = stages(Files(tmp_path))
    kinds = {stage.name: stage.kind for stage in found.stages}
    assert kinds["PIL decoding"] == DECODE
    assert kinds["PIL.Image.open"] == kinds["reading files"] == kinds["numpy.load"] == READ
    assert named(found, "PIL decoding").median > 0
    assert (builtins.open, Image.open, np.load, ImageFile.ImageFile.load) == originals


def test_files_that_a_dataset_keeps_open_work_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(bytes(range(64)))

    class Kept(Dataset[int]):
        def __init__(self) -> None:
            self.file: io.BufferedReader | None = None

        def __len__(self) -> int:
            return 16

        def __getitem__(self, index: int) -> int:
            if self.file is None:
                self.file = open(path, "rb")  # noqa: SIM115 - as datasets do, in their worker
            self.file.seek(index)
            return self.file.read(1)[0]

    data = Kept()
    readable = readable_loader(DataLoader(data, batch_size=4))
    with readable.reading():
        found = time_stages(readable, 0.2)
        kept = readable.parts().dataset
        assert kept[5] == 5
        kept.file.close()
    assert named(found.times.result(), "reading files").calls >= 1
    assert data.file is None


def test_the_hot_line_of_the_users_own_is_named() -> None:
    def read() -> int:
        time.sleep(0.01)  # the slow line
        return 1

    lines = hot_lines(read, 0.4)
    assert lines
    assert lines[0].code.endswith("# the slow line")
    assert lines[0].share > 0.5


# -- between processes --


def test_bytes_by_shared_memory_and_through_the_pipe_are_exact() -> None:
    samples = [(torch.zeros(100), np.zeros(50), "text")] * 4

    def gather(rows: list[Any]) -> Any:
        return torch.stack([row[0] for row in rows]), np.stack([row[1] for row in rows])

    found = measure_transfer(samples, gather, 0.3)
    assert found.shared == 4 * 100 * 4
    assert 4 * 50 * 8 <= found.piped < 4 * 50 * 8 + 500
    assert found.samples == 4
    assert found.seconds is not None


def test_large_samples_take_longer_to_move_than_small_ones() -> None:
    small = measure_transfer([np.zeros(10)] * 2, list, 0.3)
    large = measure_transfer([np.zeros(2_000_000)] * 2, list, 0.3)
    assert small.seconds is not None
    assert large.seconds is not None
    assert large.seconds > small.seconds
    assert large.piped >= 2 * 16_000_000


def test_collate_that_takes_samples_apart_can_be_repeated() -> None:
    def gather(rows: list[dict[str, Any]]) -> list[Any]:
        return [row.pop("x") for row in rows]

    assert measure_transfer([{"x": 1}, {"x": 2}], gather, 0.2).seconds is not None


def test_what_can_not_be_pickled_weighs_nothing() -> None:
    assert piped_bytes(lambda: None) == 0


def test_moving_is_a_stage_only_with_workers() -> None:
    without = measure(readable_loader(DataLoader(Rows(Quick()), batch_size=4)), seconds=1.0)
    worker = measure(readable_loader(DataLoader(Rows(Quick()), batch_size=4, num_workers=1)), seconds=1.0)
    assert without.stages is not None
    assert worker.stages is not None
    assert PICKLE not in {stage.kind for stage in without.stages.stages}
    assert PICKLE in {stage.kind for stage in worker.stages.stages}
    assert abs(sum(stage.share for stage in worker.stages.stages) - 1) < 1e-6
