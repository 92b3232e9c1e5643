"""Survey of a dataset, split by split: plain data for the checks and for rendering.

Written as the facts `data.survey` and `data.between` (docs/signals.md). No torch here, and no samples except
the few that are shown: everything was counted while they were read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.records.codec import keyed, plain, read
from clew.records.finding import Exhibit

INPUT, LABEL, OTHER = "input", "label", "other"
MOST_LISTED = 50  # indices listed one by one, at most


@dataclass(frozen=True)
class Count:
    """How often something occurred."""

    what: str  # "3×32×32", "float32", "class 7"
    samples: int
    first: tuple[int, ...] = ()  # indices of the first few


@dataclass(frozen=True)
class FieldSurvey:
    """One field of the samples: an image, a label, a row of a table."""

    name: str  # key or position in the sample: "0", "image", "meta.age"
    role: str = OTHER  # INPUT, LABEL or OTHER (an identifier, a path)
    kind: str = ""  # "image", "vector", "wave", "tokens", "number", "text", "object", "array"
    samples: int = 0  # samples that have it
    shapes: tuple[Count, ...] = ()  # the most frequent first
    dtypes: tuple[Count, ...] = ()
    low: float | None = None  # of the finite values, as are mean and std
    high: float | None = None
    mean: float | None = None
    std: float | None = None
    level: float | None = None  # median of the samples' means: one odd sample does not change it
    level_spread: float = 0.0  # standard deviation of these means, from their quartiles
    contrast: float | None = None  # median of the standard deviation within a sample
    contrast_spread: float = 0.0  # standard deviation of its logarithm, from the quartiles
    zeros: float = 0.0  # share of the values
    whole: bool = False  # all values are whole numbers
    nonfinite: int = 0  # values that are NaN or infinite
    nonfinite_samples: int = 0
    nonfinite_at: tuple[int, ...] = ()  # indices of these samples
    features: int = 0  # values in a sample, if all have the same shape
    constant: int = 0  # features that never vary
    constant_at: tuple[int, ...] = ()
    spread: float = 1.0  # largest over median standard deviation of the features of a table
    blank: int = 0  # samples with only one value
    blank_at: tuple[int, ...] = ()
    empty: int = 0  # samples without any value
    empty_at: tuple[int, ...] = ()


@dataclass(frozen=True)
class LabelSurvey:
    """The labels that come with the samples."""

    field: str
    kind: str = "class"  # "class" or "value"
    samples: int = 0
    classes: int = 0
    counts: tuple[Count, ...] = ()  # by class, the most frequent first, at most 100
    missing: tuple[int, ...] = ()  # whole numbers between the lowest and the highest that never occur
    neighbours: int = 0  # pairs of samples with successive indices
    switches: float = 0.0  # share of these whose labels differ
    by_chance: float = 0.0  # share that would differ in a random order
    deviations: float = 0.0  # of `switches` from `by_chance`, in standard errors; below zero: sorted
    trend: float = 0.0  # for values: correlation of neighbours, 0 in a random order


@dataclass(frozen=True)
class SampleOrder:
    """The first batches, as the loader's sampler builds them."""

    sampler: str = ""
    shuffled: bool = False  # by a random sampler
    batches: int = 0  # batches that were read
    batch_size: int = 0
    single: int = 0  # batches of one class only
    switches: float = 0.0  # share of neighbours in a batch whose labels differ
    runs: float = 0.0  # share of batches that begin with the class of the previous one
    top_share: float = 0.0  # of the most frequent class among all drawn samples
    top: str = ""
    dominant_share: float = keyed("lean", 0.0)  # median share of the most frequent class in a batch


@dataclass(frozen=True)
class CopiedPair:
    """Two samples that are alike."""

    first: int
    second: int
    first_label: str = ""
    second_label: str = ""
    distance: float = 0.0  # 0: identical; otherwise relative to other neighbours (tokens: share that differs)


@dataclass(frozen=True)
class Duplicates:
    """Samples that occur twice, within a split or between two."""

    method: str = ""  # "content", "picture", "features", "shingles"
    compared: int = 0  # samples; between splits: of the second
    reason: str = ""  # why it could not be determined
    copies: int = 0  # samples seen before (between splits: that are in the first one too)
    groups: int = 0  # sets of samples that are alike
    conflicting: int = 0  # groups with different labels
    neighbours: int = 0  # pairs with adjacent indices: windows, video frames
    natural: float = 0.0  # pairs expected by chance in data with so few different values
    share: float = 0.0  # of all samples of the (second) split, estimated from those that were read
    meant: str = ""  # why the copies seem to be intended
    pairs: tuple[CopiedPair, ...] = ()


@dataclass(frozen=True)
class Outlier:
    """A sample that is unlike all others."""

    index: int
    why: str  # "scale", "range", "length", "blank", "empty"
    field: str = ""
    value: float = 0.0
    usual: float = 0.0  # the median of all samples
    farthest: float = 0.0  # the most extreme of the others
    feature: int | None = None  # for a table: the column


@dataclass(frozen=True)
class Corrupt:
    """A sample that could not be read."""

    index: int
    error: str  # "UnidentifiedImageError: cannot identify image file …"
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class SurveyExhibit:
    """A sample that is shown, and why."""

    about: str = ""  # "exact", "near" or "outlier"
    index: int | None = None
    kind: str = ""  # the rest as in `Exhibit`
    caption: str = ""
    data: Any = None

    @property
    def exhibit(self) -> Exhibit:
        return Exhibit(self.kind, self.caption, self.data)


@dataclass(frozen=True)
class Mutation:
    """Reading changes what is stored, or what is read the next time."""

    arrays: tuple[str, ...] = ()  # attributes of the dataset
    means: tuple[float, ...] = ()  # of the samples, one per reading
    deviations: tuple[float, ...] = ()


@dataclass(frozen=True)
class DatasetSurvey:
    """The survey of one split."""

    split: str  # "train", "val", or the loader's name
    role: str = ""  # "train" or "eval", if known
    dataset: str = ""  # class of the dataset
    loader: int = -1  # number of the loader
    file: str | None = None  # where the program iterates over it
    line: int | None = None
    total: int | None = None  # number of samples; None if unknown
    samples_read: int = keyed("looked", 0)  # samples read without error
    seconds: float = 0.0
    stopped: str = ""  # why it ended early: "time limit"
    random: str = ""  # how reading draws random numbers: "", "seeded" or "unseeded"
    stacked: bool = False  # torch's default_collate builds the batches
    fields: tuple[FieldSurvey, ...] = ()
    missing_fields: tuple[Count, ...] = ()  # fields that some samples lack
    labels: LabelSurvey | None = None
    order: SampleOrder | None = None
    exact: Duplicates = field(default_factory=Duplicates)
    near: Duplicates = field(default_factory=Duplicates)
    outliers: tuple[Outlier, ...] = ()
    outlier_count: int = 0
    corrupt: tuple[Corrupt, ...] = ()
    corrupt_count: int = 0
    nothing: int = 0  # how many of these were None
    past_end: int | None = None  # all samples from this index on are out of range: len() is too large
    mutation: Mutation | None = None
    exhibits: tuple[SurveyExhibit, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every sample was read."""
        return self.total is not None and self.samples_read + self.corrupt_count >= self.total

    @property
    def main(self) -> FieldSurvey | None:
        """The field that the model gets, as far as is known: the largest of the inputs."""
        inputs = [f for f in self.fields if f.role == INPUT]
        return max(inputs, key=lambda f: f.features, default=None)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = plain(self)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DatasetSurvey:
        return read(cls, {"split": "", **data})


@dataclass(frozen=True)
class Between:
    """Two splits compared: which samples of the second are also in the first."""

    first: str  # "train"
    second: str  # "val"
    roles: tuple[str, ...] = ()
    same_dataset: bool = False  # the very same samples, by object and index
    shared: int = 0  # indices of one dataset that both splits contain
    coverage: float = 1.0  # share of the first that was read
    exact: Duplicates = field(default_factory=Duplicates)
    near: Duplicates = field(default_factory=Duplicates)
    file: str | None = None  # where the program iterates over the second
    line: int | None = None
    exhibits: tuple[SurveyExhibit, ...] = ()

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = plain(self)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Between:
        return read(cls, {"first": "", "second": "", **data})
