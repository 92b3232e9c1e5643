"""One pass over a split: reads every sample once and keeps hashes, sketches and counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
from torch.utils.data import default_collate
from torch.utils.data.sampler import BatchSampler, RandomSampler

from clew.labs.loaders.field_values import Leaf, roles, taken_apart
from clew.labs.loaders.look.sample_reader import PROBES, Reader, reader
from clew.labs.loaders.pipeline import ITERABLE, MAP, CannotRead, Pipeline
from clew.labs.loaders.survey.content_hash import content, sketch
from clew.labs.loaders.survey.copied_samples import BLOCK, chosen_of, meant_copies, within
from clew.labs.loaders.survey.dataset_labels import label_of, labels, order
from clew.labs.loaders.survey.field_tallies import FieldTally
from clew.labs.loaders.survey.main_input import is_rich, is_sequence, lacking, main_input, place_of, scale_of
from clew.labs.loaders.survey.near_copies import MOST_COMPARED, Sketches
from clew.labs.loaders.survey.outliers import by_size, by_value
from clew.labs.loaders.survey.survey_exhibits import exhibits_of
from clew.records.dataset_survey import (
    INPUT,
    LABEL,
    MOST_LISTED,
    Corrupt,
    DatasetSurvey,
    FieldSurvey,
    LabelSurvey,
    Outlier,
    SampleOrder,
)

BATCHES = 64  # batches, as the sampler builds them, that are read
DELIVERED = 0.25  # of the samples that are spent on them
FEWEST_BATCHES = 4  # unless these are all that can be read
LONG_BLOCK = 64  # samples read in a row where all are

OFTEN = 0.1  # seconds between two progress reports
FEW = 0.01  # share of blank samples up to which they count as unusual

Progress = Callable[[int, int, str], None]  # samples read, samples to read, split


class Pass:
    """One split."""

    def __init__(self, pipeline: Pipeline, limit: int | None, progress: Progress | None) -> None:
        self.pipeline = pipeline
        self.limit = limit
        self.deadline = 0.0  # is set when its turn comes
        self.kept = Sketches()
        self.total = length_of(pipeline)
        origins = chosen_of(pipeline.dataset)[1]
        self._origins = origins if origins is not None and len(origins) == self.total else None
        self.looked = 0
        self.stopped = ""
        self._progress = progress
        self._told = 0.0
        self._began = perf_counter()
        self._tallies: dict[str, FieldTally] = {}
        self.roles: dict[str, str] = {}
        self._given: dict[int, str] = {}  # label by index
        self._of_floats = False
        self._sizes: list[float] = []
        self._lengths: list[float] = []
        self._read: list[int] = []
        self._corrupt: list[Corrupt] = []
        self._corrupt_count = self._nothing = 0
        self._raised: list[int] = []  # indices out of range
        self._batches: list[list[int]] = []
        self.reader: Reader | None = None
        self._made: DatasetSurvey | None = None

    # -- reading --

    def prepare(self) -> None:
        """How samples are read is decided before any split is read, since splits are compared."""
        if self.pipeline.kind == ITERABLE:
            return
        if not self.total:
            self.stopped = "the length of the dataset is unknown" if self.total is None else "it is empty"
            return
        with self.pipeline.reading():
            self.reader = reader(self.pipeline, spread(self.total, PROBES))

    def lay_bare(self) -> None:
        """Another split can only be compared without its transforms: read this one without them too."""
        if self.reader is not None:
            with self.pipeline.reading():
                self.reader = self.reader.without_transforms()

    def run(self) -> None:
        try:
            with self.pipeline.reading():
                self._pass()
        except CannotRead as reason:
            self.stopped = str(reason)

    def _pass(self) -> None:
        if self.pipeline.kind == ITERABLE:
            self._in_a_row()
        if self.reader is None or self.total is None:
            return
        self._batches = first_batches(self.pipeline, self.limit or self.total)
        self.roles = roles(self._probed(self.reader))
        if self.reader.mutation is not None and self.pipeline.note:
            self.stopped = f"reading a sample changes it, and {self.pipeline.note}"
            return
        wanted = plan(self.total, self.limit, self._batches)
        for done, index in enumerate(wanted):
            if self._out_of_time(done, len(wanted)):
                break
            self._one(index, self.reader)
        made = self.survey()
        self._made = replace(made, exhibits=exhibits_of(self.reader, made, self.roles))

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
            sample = read.pipeline.sample(index, seed=index)
            if sample is None:
                self._count_corrupt(index, "the dataset returned None", None)
                self._nothing += 1
                return
            leaves = taken_apart(sample)
            compared = None if read.reason else read.read_for_comparing(index) or leaves
        except Exception as error:  # noqa: BLE001 - the dataset's own
            self._count_corrupt(index, f"{type(error).__name__}: {error}", error)
            return
        self._add(index, leaves, compared)

    def _in_a_row(self) -> None:
        """Samples of a dataset without an index: in order, within the limit."""
        samples = self.pipeline.samples()
        probed: list[tuple[int, dict[str, Leaf]]] = []
        for index in itertools.count():
            if (self.limit is not None and index >= self.limit) or self._out_of_time(index, self.limit or 0):
                break
            try:
                leaves = taken_apart(next(samples))
            except StopIteration:
                self.total = self.looked
                break
            except CannotRead:
                raise
            except Exception as error:  # noqa: BLE001 - the dataset's own, after which it has ended
                self._count_corrupt(index, f"{type(error).__name__}: {error}", error)
                break
            probed.append((index, leaves)) if len(probed) < PROBES else None
            if len(probed) == index + 1:
                self.roles = roles(probed)
            self._add(index, leaves, leaves)

    def _out_of_time(self, done: int, wanted: int) -> bool:
        now = perf_counter()
        if self._progress is not None and now - self._told > OFTEN:
            self._told = now
            self._progress(done, wanted, self.pipeline.name)
        if now > self.deadline and done:
            self.stopped = "the time limit"
        return bool(self.stopped)

    def _count_corrupt(self, index: int, words: str, error: Exception | None) -> None:
        self._corrupt_count += 1
        if isinstance(error, IndexError):
            self._raised.append(index)
        if len(self._corrupt) < MOST_LISTED:
            file, line = place_of(error)
            self._corrupt.append(Corrupt(index, words[:300], file, line))

    # -- counting --

    def _add(self, index: int, leaves: dict[str, Leaf], compared: dict[str, Leaf] | None) -> None:
        self.looked += 1
        self._read.append(index)
        for name, leaf in leaves.items():
            self._tallies.setdefault(name, FieldTally(name)).add(index, leaf)
            self.roles.setdefault(name, INPUT)
        answer = next((leaves[n] for n, role in self.roles.items() if role == LABEL and n in leaves), None)
        label = label_of(answer)
        if label is not None and answer is not None:
            self._given[index] = label
            self._of_floats |= answer.array is not None and answer.array.dtype.kind == "f"
        main = main_input(leaves, self.roles)
        self._sizes.append(scale_of(main))
        self._lengths.append(float(main.shape[0]) if main is not None and is_sequence(main) else 0.0)
        if compared is not None:
            self._keep(index, compared, label or "")

    def _keep(self, index: int, leaves: dict[str, Leaf], label: str) -> None:
        kept, main = self.kept, main_input(leaves, self.roles)
        inputs = [leaf for name, leaf in leaves.items() if self.roles.get(name, INPUT) == INPUT]
        rich = main is not None and any(is_rich(leaf) for leaf in inputs)
        kept.indices.append(index)
        kept.origins.append(index if self._origins is None else self._origins[index])
        kept.hashes.append(content(inputs))
        kept.labels.append(label)
        kept.rich.append(rich)
        made = sketch(main) if rich and main is not None and len(kept.sketches) < MOST_COMPARED else None
        if made is not None and kept.method in ("", made[0]):
            kept.method = made[0]
            kept.sketches.append(made[1])
            kept.sketched.append(len(kept.indices) - 1)

    # -- what came out --

    @property
    def coverage(self) -> float:
        return min(self.looked / self.total, 1.0) if self.total else 1.0

    def survey(self) -> DatasetSurvey:
        if self._made is None:
            self._made = self._with_copies(self._summed_up())
        return self._made

    def _summed_up(self) -> DatasetSurvey:
        found = tuple(t.survey(self.roles.get(n, INPUT)) for n, t in self._tallies.items())
        said = self._labels()
        outliers = self._outliers(found, said)
        mutation = self.reader.mutation if self.reader is not None else None
        return DatasetSurvey(
            split=self.pipeline.name,
            role=self.pipeline.role,
            dataset=type(self.pipeline.dataset).__name__,
            loader=-1 if self.pipeline.number is None else self.pipeline.number,
            file=self.pipeline.file,
            line=self.pipeline.line,
            total=self.total,
            looked=self.looked,
            seconds=round(perf_counter() - self._began, 3),
            stopped=self.stopped,
            random=self.reader.random if self.reader is not None else "",
            stacked=is_stacked(self.pipeline),
            fields=found,
            missing_fields=lacking(found, self.looked),
            labels=said,
            order=self._order(said),
            outliers=tuple(outliers[:MOST_LISTED]),
            outlier_count=len(outliers),
            corrupt=tuple(sorted(self._corrupt, key=lambda c: c.index)),
            corrupt_count=self._corrupt_count,
            nothing=self._nothing,
            past_end=self._past_end(),
            mutation=mutation,
        )

    def _with_copies(self, made: DatasetSurvey) -> DatasetSurvey:
        if self.reader is not None and self.reader.reason:
            nothing = replace(made.exact, reason=self.reader.reason)
            return replace(made, exact=nothing, near=nothing)
        exact, near = within(self.kept, self.looked, self.total, meant_copies(self.pipeline.dataset))
        return replace(made, exact=exact, near=near)

    def _labels(self) -> LabelSurvey | None:
        field = next((n for n, role in self.roles.items() if role == LABEL), "")
        return labels(field, self._given, self._of_floats, self.total)

    def _order(self, said: LabelSurvey | None) -> SampleOrder | None:
        if said is None or said.kind != "class" or not self._batches:
            return None
        own = self.pipeline.batch_sampler
        sampler = own if own is not None and type(own) is not BatchSampler else self.pipeline.sampler
        shuffled = isinstance(sampler, RandomSampler)
        size = self.pipeline.batch_size or max(map(len, self._batches))
        return order(
            "" if sampler is None else type(sampler).__name__, shuffled, self._batches, self._given, size
        )

    def _outliers(self, found: Sequence[FieldSurvey], said: LabelSurvey | None) -> list[Outlier]:
        main = max((f for f in found if f.role == INPUT), key=lambda f: f.features, default=None)
        if main is None:
            return []
        listed: list[Outlier] = []
        if main.kind in ("image", "wave", "array"):
            listed += by_size(self._read, self._sizes, "scale", main.name)
            if main.blank <= max(FEW * len(self._read), 1):
                listed += [Outlier(i, "blank", main.name) for i in main.blank_at]
        if len(main.shapes) > 1 or main.kind == "text":
            listed += by_size(self._read, self._lengths, "length", main.name)
        listed += [Outlier(i, "empty", main.name) for i in main.empty_at]
        listed += self._unusual_columns(main)
        if said is not None and said.kind == "value":
            listed += self._unusual_targets(said)
        return listed

    def _unusual_columns(self, main: FieldSurvey) -> Iterator[Outlier]:
        kept = self.kept
        if main.kind != "vector" or len({s.size for s in kept.sketches}) != 1:
            return
        table = np.stack(kept.sketches).astype(np.float64)
        if table.shape[1] != main.features:
            return  # projections, not columns
        indices = [kept.indices[n] for n in kept.sketched]
        for column in range(table.shape[1]):
            yield from by_value(indices, table[:, column], main.name, column)

    def _unusual_targets(self, said: LabelSurvey) -> list[Outlier]:
        try:
            values = np.array([float(v) for v in self._given.values()])
        except ValueError:
            return []
        return by_value(list(self._given), values, said.field)

    def _past_end(self) -> int | None:
        """The index from which every read is out of range: then the length is wrong, not the samples."""
        if not self._raised or self.total is None:
            return None
        start = min(self._raised)
        return start if start > max(self._read, default=-1) else None


def length_of(pipeline: Pipeline) -> int | None:
    try:
        return pipeline.length if pipeline.kind == MAP else None
    except Exception:  # noqa: BLE001 - the dataset's own
        return None


def first_batches(pipeline: Pipeline, limit: int) -> list[list[int]]:
    """Indices of the first batches of an epoch, as far as they are worth reading."""
    found: list[list[int]] = []
    try:
        for batch in itertools.islice(pipeline.indices(), BATCHES):
            found.append([int(i) for i in batch])
            read = sum(map(len, found))
            if read >= limit or (read >= DELIVERED * limit and len(found) >= FEWEST_BATCHES):
                break
    except Exception:  # noqa: BLE001 - a sampler of the user's own, or indices that are no numbers
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


def is_stacked(pipeline: Pipeline) -> bool:
    return pipeline.collate is default_collate and (pipeline.batch_size or 1) > 1
