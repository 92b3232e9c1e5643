"""A loader that can be read without side effects: its samples, its batches and the stages in between.

`find_loaders(watcher, collector)` returns those of a running program, `readable_loader(loader)` that of a
given object. All reading goes through a `ReadableLoader`, inside `reading()`: it restores random generators,
attributes, output and warnings afterwards, and never touches the user's iterators. Inside it standard output
is discarded, as a dataset may print.

    with readable.reading():
        sample = readable.sample(17)              # as the dataset returns it
        batch = readable.batch([17, 3, 4])        # as the loader makes it
    with readable.reading(), readable.following(listener):
        readable.sample(17)                       # listener(StageCall) for every stage that it passes

Measuring and surveying build on this: `speed.speed_measurement.measure(readable, …)` and
`survey.split_survey.survey(loaders, …)`.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, default_collate
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from clew.labs.loaders.stage_trace import Listener, StageFollower, followed
from clew.labs.snapshot.dataset_copy import copied, owned
from clew.labs.snapshot.dataset_stages import READ, DatasetStage, read_name, stages_of, state_owners
from clew.labs.snapshot.snapshot import snapshot
from clew.labs.snapshot.time_limit import CannotJudge
from clew.measure.rng import seed_all
from clew.records.errors import CannotRead

MAP, ITERABLE, BATCHES, MODEL = "map", "iterable", "batches", "model"
TRAIN, EVAL = "train", "eval"
BATCH_SIZE = 32  # of a dataset that comes without a loader
MOST_TAKEN = 16  # batches of an iterable that is no loader
NO_WORKERS: dict[str, Any] = {
    "num_workers": 0,
    "prefetch_factor": None,
    "persistent_workers": False,
    "timeout": 0,
    "_DataLoader__multiprocessing_context": None,
}


class LoaderParts(NamedTuple):
    """The objects of a loader that read samples and build batches."""

    dataset: Any
    collate: Any
    sampler: Any
    batch_sampler: Any


@dataclass
class ReadableLoader:
    """One loader of a program, or a substitute for one.

    `kind`: MAP (samples by index), ITERABLE (samples in order), BATCHES (a list or an iterable of
    ready batches), MODEL (only what a model was given is known: no loader was seen).
    """

    kind: str
    loader: Any = None  # the program's object; read its settings, don't iterate it
    dataset: Any = None  # the program's object; read it through sample() and batch()
    collate: Any = None
    sampler: Any = None
    batch_sampler: Any = None
    batch_size: int | None = None
    role: str = ""  # TRAIN, EVAL; empty: not known
    names: tuple[str, ...] = ()  # of the loader in the program, innermost function first
    file: str | None = None  # where it is created, or first iterated
    line: int | None = None
    number: int | None = None  # number of its `loader` fact; None: not iterated
    delivered: list[Any] = field(default_factory=list)  # batches as the program got them, own copies
    inputs: list[Any] = field(default_factory=list)  # (args, kwargs) of the model for these batches
    drawn: list[list[int] | None] = field(default_factory=list)  # indices of these batches; None: not known
    scope: dict[str, Any] = field(default_factory=dict)  # the program's globals, to find a tokenizer in
    note: str = ""  # why the program's own objects are read instead of a copy

    def __post_init__(self) -> None:
        self._copy: LoaderParts | None = None
        self._follower: StageFollower | None = None
        self._depth = 0

    # -- what it is --

    @property
    def name(self) -> str:
        """`train_loader`, or `loader at train.py:12`."""
        if self.names:
            return self.names[0]
        if self.file is not None:
            return f"loader at {self.file.rsplit('/', 1)[-1]}:{self.line}"
        return {MODEL: "what the model gets", BATCHES: "batches"}.get(self.kind, "loader")

    @property
    def length(self) -> int | None:
        """Samples in the dataset; None if that is not known."""
        try:
            return len(self.dataset) if self.dataset is not None else None
        except (TypeError, NotImplementedError, AttributeError):
            return None

    @property
    def workers(self) -> int:
        return int(getattr(self.loader, "num_workers", 0) or 0)

    @property
    def shuffled(self) -> bool | None:
        return isinstance(self.sampler, RandomSampler) if self.kind == MAP else None

    @property
    def stages(self) -> tuple[DatasetStage, ...]:
        """The stages of what is read (the copy, if there is one), outermost dataset first, collate last."""
        parts = self.parts()
        return tuple(stages_of(parts.dataset, parts.collate))

    # -- reading --

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Everything below that reads must be called inside it. Can be nested."""
        if self._depth:
            yield
            return
        self._depth += 1
        try:
            owners = (self.loader, self.dataset, self.collate, self.sampler, self.batch_sampler)
            with snapshot(state_owners(owners)):
                yield
        finally:
            self._depth -= 1

    @contextlib.contextmanager
    def following(self, listener: Listener, entering: Listener | None = None) -> Iterator[StageFollower]:
        """Notify `listener` of every call of a stage (`StageCall`), innermost first; `entering` is
        called when a call begins. The outermost dataset and collate are included."""
        self._follower = follower = StageFollower(listener, entering)
        try:
            with followed(self.stages, follower):
                yield follower
        finally:
            self._follower = None

    def sample(self, index: int, seed: int | None = None) -> Any:
        """One sample as the dataset returns it, in its own memory. With a seed, its random parts
        are drawn from that seed. Raises what the dataset raises, or CannotRead."""
        if seed is not None:
            seed_all(seed)
        if self.kind == MAP:
            return owned(self._read(self.parts().dataset.__getitem__, index))
        if self.kind == ITERABLE:
            return next(itertools.islice(self.samples(), index, None))
        raise CannotRead("single samples are not available because there is no dataset")

    def samples(self) -> Iterator[Any]:
        """For a dataset without an index: its samples in order, from the first."""
        if self.kind != ITERABLE:
            raise CannotRead("samples are not available because there is no dataset")
        self.require_copy()
        iterator = iter(self.parts().dataset)
        while True:
            try:
                sample = self._read(iterator.__next__)
            except StopIteration:
                return
            yield owned(sample)

    def batch(self, indices: Sequence[int], seed: int | None = None) -> Any:
        """The loader's batch of these indices, built in this process."""
        if self.kind != MAP:
            raise CannotRead("batches of selected samples are not available here")
        if seed is not None:
            seed_all(seed)
        dataset, collate, *_ = self.parts()
        if self._follower is None and collate is not None:
            return _MapDatasetFetcher(dataset, True, collate, False).fetch(list(indices))
        return self.collated([self._read(dataset.__getitem__, index) for index in indices])

    def collated(self, samples: Sequence[Any]) -> Any:
        """A batch of these samples."""
        collate = self.parts().collate
        if collate is None:
            raise CannotRead("the dataset creates its own batches")
        if self._follower is None:
            return collate(list(samples))
        return self._follower.call(self.stages[-1], collate, list(samples))

    def indices(self) -> Iterator[list[int]]:
        """The indices of each batch, as a new epoch would draw them."""
        _, _, sampler, batch_sampler = self.parts()
        if self.kind != MAP:
            raise CannotRead("the dataset has no indices")
        if batch_sampler is not None:
            yield from (list(some) for some in batch_sampler)
            return
        order = iter(sampler) if sampler is not None else iter(range(self.length or 0))
        while some := list(itertools.islice(order, self.batch_size or 1)):
            yield some

    def batches(self) -> Iterator[Any]:
        """The batches of a new epoch, built in this process; for a list of batches, these."""
        if self.kind in (BATCHES, MODEL):
            yield from self.delivered
        elif self.kind == MAP and self.collate is not None:
            yield from (self.batch(some) for some in self.indices())
        else:
            self.require_copy()
            yield from self.bare_loader()

    def bare_loader(self, **changes: Any) -> Any:
        """A new loader with the same settings but no workers; without a loader, one over the dataset.

        `changes` are further settings (`num_workers=2, prefetch_factor=4`). Its iteration draws from the
        program's generators unless it runs inside reading().
        """
        parts = self.parts()
        if self.loader is None:
            bare: Any = DataLoader(parts.dataset, batch_size=self.batch_size, collate_fn=parts.collate)
        else:
            bare = copy.copy(self.loader)
            vars(bare).update(
                dataset=parts.dataset,
                collate_fn=parts.collate or self.loader.collate_fn,
                sampler=parts.sampler,
                batch_sampler=parts.batch_sampler,
            )
        settings = {**NO_WORKERS, "pin_memory": False, "_iterator": None, **changes}
        if settings["num_workers"] and settings["prefetch_factor"] is None:
            settings["prefetch_factor"] = 2
        vars(bare).update(settings)
        return bare

    # -- inside --

    def parts(self) -> LoaderParts:
        """The objects that are read: copies, created on first use; the originals if they can't be copied."""
        if self._copy is None:
            self._copy = LoaderParts(self.dataset, self.collate, self.sampler, self.batch_sampler)
            try:
                self._copy = copied(self._copy)
            except CannotJudge as reason:
                self.note = str(reason)
        return self._copy

    def require_copy(self) -> None:
        """Raise CannotRead for an iterable dataset that could not be copied."""
        self.parts()
        if self.kind == ITERABLE and self.note:
            raise CannotRead(f"{self.note}: reading it again would take samples away from training")

    def _read(self, function: Any, *args: Any) -> Any:
        """Call the dataset's function; the follower is notified of it."""
        if self._follower is None:
            return function(*args)
        dataset = self.parts().dataset
        return self._follower.call(DatasetStage(read_name(dataset), READ, dataset), function, *args)


def readable_loader(given: Any, *, role: str = "", names: Sequence[str] = ()) -> ReadableLoader:
    """From a DataLoader, a dataset, a list of batches or any iterable of them.

    From a generator the first few batches are taken and lost to the caller. Raises CannotRead.
    """
    if isinstance(given, DataLoader):
        return of_loader(given, role=role, names=names)
    named: dict[str, Any] = {"role": role, "names": tuple(names)}
    if isinstance(given, Dataset) or (hasattr(given, "__getitem__") and _is_of_samples(given)):
        kind = ITERABLE if isinstance(given, IterableDataset) else MAP
        return ReadableLoader(kind, dataset=given, collate=default_collate, batch_size=BATCH_SIZE, **named)
    if not hasattr(given, "__iter__") or isinstance(given, (str, bytes)):
        raise CannotRead(f"expected a DataLoader, a dataset or batches, not {type(given).__name__}")
    taken = [owned(batch) for batch in itertools.islice(iter(given), MOST_TAKEN)]
    if not taken:
        raise CannotRead("it contains no batches")
    return ReadableLoader(BATCHES, loader=given, delivered=taken, **named)


def _is_of_samples(given: Any) -> bool:
    """An instance of the user's class that is read by index, not a list or a tensor."""
    library = type(given).__module__.split(".")[0]
    return not isinstance(given, (list, tuple, dict, str, bytes)) and library not in ("numpy", "torch")


def of_loader(loader: DataLoader[Any], *, role: str = "", names: Sequence[str] = ()) -> ReadableLoader:
    """From a torch DataLoader. A `collate` of None: the dataset creates its own batches."""
    iterable = isinstance(loader.dataset, IterableDataset)
    collates = loader.batch_sampler is not None or (iterable and loader.batch_size is not None)
    return ReadableLoader(
        ITERABLE if iterable else MAP,
        loader=loader,
        dataset=loader.dataset,
        collate=loader.collate_fn if collates else None,
        sampler=getattr(loader, "sampler", None),
        batch_sampler=getattr(loader, "batch_sampler", None),
        batch_size=loader.batch_size or getattr(loader.batch_sampler, "batch_size", None),
        role=role,
        names=tuple(names),
    )
