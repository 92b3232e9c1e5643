"""One pass over a split: reads every sample once and keeps hashes, sketches and counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from torch.utils.data import default_collate
from torch.utils.data.sampler import BatchSampler, RandomSampler

from clew.hooks.entry.user_line import user_frame
from clew.labs.loaders.field_values import Leaf, main_input, roles, split_fields
from clew.labs.loaders.readable_loader import ITERABLE, MAP, ReadableLoader
from clew.labs.loaders.survey.copied_samples import BLOCK, chosen_of, meant_copies, within
from clew.labs.loaders.survey.dataset_labels import label_of, labels, order
from clew.labs.loaders.survey.field_tallies import FieldTally
from clew.labs.loaders.survey.near_copies import Sketches
from clew.labs.loaders.survey.outliers import SampleSizes, unusual_columns, unusual_targets
from clew.labs.loaders.survey.sample_reader import PROBES, Reader, probe
from clew.records.dataset_survey import (
    INPUT,
    LABEL,
    MOST_LISTED,
    Corrupt,
    Count,
    DatasetSurvey,
    Duplicates,
    FieldSurvey,
    LabelSurvey,
    Outlier,
    SampleOrder,
)
from clew.records.errors import CannotRead

BATCHES = 64  # batches, as the sampler builds them, that are read
DELIVERED = 0.25  # share of the samples that are read from them
FEWEST_BATCHES = 4  # unless these are all that can be read
LONG_BLOCK = 64  # samples read in a row where all are

OFTEN = 0.1  # seconds between two progress reports

Progress = Callable[[int, int, str], None]  # samples read, samples to read, split


class Pass:
    """One split."""

    def __init__(self, readable: ReadableLoader, limit: int | None, progress: Progress | None) -> None:
        self.readable = readable
        self.limit = limit
        self.deadline = 0.0  # is set when its turn comes
        self.kept = Sketches()
        self.total = length_of(readable)
        origins = chosen_of(readable.dataset)[1]
        self._origins = origins if origins is not None and len(origins) == self.total else None
        self.stopped = ""
        self._progress = progress
        self._reported = 0.0  # time of the last progress report
        self._began = perf_counter()
        self._tallies: dict[str, FieldTally] = {}
        self.roles: dict[str, str] = {}
        self._labels_by_index: dict[int, str] = {}
        self._floats_as_labels = False
        self._sizes = SampleSizes()
        self._corrupt: list[Corrupt] = []
        self._corrupt_count = self._nothing = 0
        self._raised: list[int] = []  # indices out of range
        self._batches: list[list[int]] = []
        self.reader: Reader | None = None
        self._seconds = 0.0

    # -- reading --

    def prepare(self) -> None:
        """How samples are read is decided before any split is read, since splits are compared."""
        if self.readable.kind == ITERABLE:
            return
        if not self.total:
            self.stopped = "the length of the dataset is unknown" if self.total is None else "it is empty"
            return
        with self.readable.reading():
            self.reader = probe(self.readable, spread(self.total, PROBES))

    def drop_transforms(self) -> None:
        """Another split can only be compared without its transforms: read this one without them too."""
        if self.reader is not None:
            with self.readable.reading():
                self.reader = self.reader.without_transforms()

    def run(self) -> None:
        try:
            with self.readable.reading():
                self._pass()
        except CannotRead as reason:
            self.stopped = str(reason)
        self._seconds = perf_counter() - self._began

    def _pass(self) -> None:
        if self.readable.kind == ITERABLE:
            self._in_a_row()
        if self.reader is None or self.total is None:
            return
        self._batches = first_batches(self.readable, self.limit or self.total)
        self.roles = roles(self._probed(self.reader))
        if self.reader.mutation is not None and self.readable.note:
            self.stopped = f"reading a sample changes it, and {self.readable.note}"
            return
        wanted = plan(self.total, self.limit, self._batches)
        for done, index in enumerate(wanted):
            if self._out_of_time(done, len(wanted)):
                break
            self._one(index, self.reader)

    def _probed(self, read: Reader) -> list[tuple[int, dict[str, Leaf]]]:
        found = []
        for index in spread(self.total or 0, PROBES):
            try:
                found.append((index, read.read(index)))
            except Exception:  # noqa: BLE001 - the dataset's own; counted when its turn comes
                continue
        return found

    def _one(self, index: int, read: Reader) -> None:
        try:
            sample = read.readable.sample(index, seed=index)
            if sample is None:
                self._count_corrupt(index, "the dataset returned None", None)
                self._nothing += 1
                return
            leaves = split_fields(sample)
            compared = None if read.reason else read.read_for_comparing(index) or leaves
        except Exception as error:  # noqa: BLE001 - the dataset's own
            self._count_corrupt(index, f"{type(error).__name__}: {error}", error)
            return
        self._add(index, leaves, compared)

    def _in_a_row(self) -> None:
        """Samples of a dataset without an index: in order, within the limit."""
        samples = self.readable.samples()
        probed: list[tuple[int, dict[str, Leaf]]] = []
        for index in itertools.count():
            if (self.limit is not None and index >= self.limit) or self._out_of_time(index, self.limit or 0):
                break
            try:
                leaves = split_fields(next(samples))
            except StopIteration:
                self.total = self.samples_read
                break
            except CannotRead:
                raise
            except Exception as error:  # noqa: BLE001 - the dataset's own, after which it has ended
                self._count_corrupt(index, f"{type(error).__name__}: {error}", error)
                break
            if index < PROBES:
                probed.append((index, leaves))
                self.roles = roles(probed)
            self._add(index, leaves, leaves)

    def _out_of_time(self, done: int, wanted: int) -> bool:
        now = perf_counter()
        if self._progress is not None and now - self._reported > OFTEN:
            self._reported = now
            self._progress(done, wanted, self.readable.name)
        if now > self.deadline and done:
            self.stopped = "the time limit"
        return bool(self.stopped)

    def _count_corrupt(self, index: int, words: str, error: Exception | None) -> None:
        self._corrupt_count += 1
        if isinstance(error, IndexError):
            self._raised.append(index)
        if len(self._corrupt) < MOST_LISTED:
            place = user_frame(error.__traceback__) if error is not None else (None, None)
            self._corrupt.append(Corrupt(index, words[:300], *place))

    # -- counting --

    def _add(self, index: int, leaves: dict[str, Leaf], compared: dict[str, Leaf] | None) -> None:
        for name, leaf in leaves.items():
            self._tallies.setdefault(name, FieldTally(name)).add(index, leaf)
            self.roles.setdefault(name, INPUT)
        answer = next((leaves[n] for n, role in self.roles.items() if role == LABEL and n in leaves), None)
        label = label_of(answer)
        if label is not None and answer is not None:
            self._labels_by_index[index] = label
            self._floats_as_labels |= answer.array is not None and answer.array.dtype.kind == "f"
        self._sizes.add(index, main_input(leaves, self.roles))
        if compared is not None:
            origin = index if self._origins is None else self._origins[index]
            self.kept.add(index, origin, compared, self.roles, label or "")

    # -- results --

    @property
    def samples_read(self) -> int:
        """Samples that were read without an error."""
        return len(self._sizes.indices)

    @property
    def coverage(self) -> float:
        return min(self.samples_read / self.total, 1.0) if self.total else 1.0

    def survey(self) -> DatasetSurvey:
        """What was found, except the samples to show."""
        found = tuple(t.survey(self.roles.get(n, INPUT)) for n, t in self._tallies.items())
        label_survey = self._labels()
        outliers = self._outliers(found, label_survey)
        exact, near = self._copies()
        mutation = self.reader.mutation if self.reader is not None else None
        return DatasetSurvey(
            split=self.readable.name,
            role=self.readable.role,
            dataset=type(self.readable.dataset).__name__,
            loader=-1 if self.readable.number is None else self.readable.number,
            file=self.readable.file,
            line=self.readable.line,
            total=self.total,
            samples_read=self.samples_read,
            seconds=round(self._seconds, 3),
            stopped=self.stopped,
            random=self.reader.random if self.reader is not None else "",
            stacked=is_stacked(self.readable),
            fields=found,
            missing_fields=tuple(
                Count(f.name, self.samples_read - f.samples) for f in found if f.samples < self.samples_read
            ),
            labels=label_survey,
            order=self._order(label_survey),
            outliers=tuple(outliers[:MOST_LISTED]),
            outlier_count=len(outliers),
            corrupt=tuple(sorted(self._corrupt, key=lambda c: c.index)),
            corrupt_count=self._corrupt_count,
            nothing=self._nothing,
            past_end=self._past_end(),
            mutation=mutation,
            exact=exact,
            near=near,
        )

    def _copies(self) -> tuple[Duplicates, Duplicates]:
        if self.reader is not None and self.reader.reason:
            return Duplicates(reason=self.reader.reason), Duplicates(reason=self.reader.reason)
        return within(self.kept, self.samples_read, self.total, meant_copies(self.readable.dataset))

    def _labels(self) -> LabelSurvey | None:
        field = next((n for n, role in self.roles.items() if role == LABEL), "")
        return labels(field, self._labels_by_index, self._floats_as_labels, self.total)

    def _order(self, label_survey: LabelSurvey | None) -> SampleOrder | None:
        if label_survey is None or label_survey.kind != "class" or not self._batches:
            return None
        own = self.readable.batch_sampler
        sampler = own if own is not None and type(own) is not BatchSampler else self.readable.sampler
        shuffled = isinstance(sampler, RandomSampler)
        size = self.readable.batch_size or max(map(len, self._batches))
        return order(
            "" if sampler is None else type(sampler).__name__,
            shuffled,
            self._batches,
            self._labels_by_index,
            size,
        )

    def _outliers(self, found: Sequence[FieldSurvey], label_survey: LabelSurvey | None) -> list[Outlier]:
        main = max((f for f in found if f.role == INPUT), key=lambda f: f.features, default=None)
        if main is None:
            return []
        listed = [*self._sizes.outliers(main), *unusual_columns(self.kept, main)]
        if label_survey is not None and label_survey.kind == "value":
            listed += unusual_targets(label_survey.field, self._labels_by_index)
        return listed

    def _past_end(self) -> int | None:
        """The index from which every read is out of range: then the length is wrong, not the samples."""
        if not self._raised or self.total is None:
            return None
        start = min(self._raised)
        return start if start > max(self._sizes.indices, default=-1) else None


def length_of(readable: ReadableLoader) -> int | None:
    try:
        return readable.length if readable.kind == MAP else None
    except Exception:  # noqa: BLE001 - the dataset's own
        return None


def first_batches(readable: ReadableLoader, limit: int) -> list[list[int]]:
    """Indices of the first batches of an epoch, as far as they are worth reading."""
    found: list[list[int]] = []
    try:
        for batch in itertools.islice(readable.indices(), BATCHES):
            found.append([int(i) for i in batch])
            read = sum(map(len, found))
            if read >= limit or (read >= DELIVERED * limit and len(found) >= FEWEST_BATCHES):
                break
    except Exception:  # noqa: BLE001 - the user's sampler, or indices that are not numbers
        return found
    return found


def spread(total: int, count: int) -> list[int]:
    """This many indices, evenly spaced."""
    return sorted({int(n) for n in np.linspace(0, total - 1, min(count, total))}) if total > 0 else []


def plan(total: int, limit: int | None, batches: Sequence[Sequence[int]]) -> list[int]:
    """Indices to read: blocks in random order, and what the sampler draws first."""
    drawn = np.random.Generator(np.random.PCG64(11))
    if limit is None or total <= limit:
        blocks = [range(n, min(n + LONG_BLOCK, total)) for n in range(0, total, LONG_BLOCK)]
    else:
        count = max(limit // BLOCK, 1)
        edges = np.linspace(0, total - BLOCK, count + 1)
        starts = [int(a + drawn.random() * (b - a)) for a, b in itertools.pairwise(edges)]
        blocks = [range(start, start + BLOCK) for start in starts]
    first = [i for batch in batches for i in batch if 0 <= i < total]
    order = drawn.permutation(len(blocks))
    return list(dict.fromkeys([*first, *(i for n in order for i in blocks[n])]))


def is_stacked(readable: ReadableLoader) -> bool:
    return readable.collate is default_collate and (readable.batch_size or 1) > 1
