"""Facts whose content has its own dataclasses, also written to files: profiles, surveys, experiments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clew.records.dataset_survey import Between, DatasetSurvey
from clew.records.facts.fact import DocumentFact, RecordedFact, facts_of
from clew.records.sample_views import Failure, LoaderView
from clew.records.step_costs import Profile
from clew.records.tried_changes import BatchSizes, TriedChange


class ProfileFact(DocumentFact[Profile]):
    """By `clew profile`, once, at the end: `traces/profile.json` (docs/api.md) without its trees and its
    timeline, with the 60 modules, operations and lines that take longest. `parts` cover all steps that
    were only timed, `modules` and `ops` the `detailed` steps, whose mean duration is `detailed_step`;
    `unattributed` is the time that belongs to no part, module or operation.
    """

    fact_kind = "profile"
    parse = Profile.from_json


class LoaderViewFact(DocumentFact[LoaderView]):
    """By `clew data`: one loader, or what stands in for one. `name`, `role` (`train`, `eval`, empty),
    `number` (of its `loader` fact; null if it was not iterated), `kind` (`map`, `iterable`, `batches`: a
    plain sequence of batches, `model`: no loader was found, these are a model's inputs), `file`, `line`,
    `dataset`, `length`, `batch_size`, `workers`, `sampler`, `shuffled`, `stages` (names, in the order in
    which a sample passes through them), `batch` and `inputs` (what the loader delivers and what the model
    gets: `[{name, type, dtype, shape, low, high, mean, std, bad (values that are not finite), text}]`),
    `remarks` (what is notable about the values), `notes` (what could not be seen, and why).
    """

    fact_kind = "data.loader"
    parse = LoaderView.from_json

    def to_json(self) -> dict[str, Any]:
        """Without the views of samples: those are in the run's `data/`."""
        return self.content.to_fact() if self.content is not None else {}


class LoaderFailureFact(DocumentFact[Failure]):
    """An exception in a loader that ended the program, traced by reading the samples again: `kind`
    (`sample`, `collate`, `killed`: a worker died, `unpicklable`, `not reproduced`), `error`, `loader`,
    `worker`, `indices` (of the batch), `index` (of the sample that fails), `stage`, `frames` (`[{file,
    line, function, code}]`, the user's own), `look` (the input of the stage), `details` (samples that
    cannot be stacked, objects that cannot be pickled), `hint`, `notes`.
    """

    fact_kind = "data.failure"
    parse = Failure.from_json


class SurveyFact(DocumentFact[DatasetSurvey]):
    """What reading a dataset found, once per dataset. `split` (name of the loader), `role` (`train`,
    `eval`), `dataset` (class), `loader` (number; -1: none), `file`, `line`, `total` (samples in the
    dataset, null if unknown), `looked` (samples read without error), `seconds`, `stopped` (why it ended
    early), `random` (reading draws random numbers: `seeded`, `unseeded`), `stacked` (batches are created
    by default_collate); `fields`: `[{name, role (input, label, other), kind (image, vector, wave, tokens,
    number, text, array, object), samples, shapes and dtypes: [{what, samples, first}], low, high, mean,
    std, level and contrast (mean and standard deviation within a sample, medians over samples),
    level_spread, contrast_spread, zeros (share), whole, nonfinite (values), nonfinite_samples,
    nonfinite_at, features, constant (features that never vary), constant_at, spread (largest over median
    standard deviation of the columns), blank, blank_at, empty, empty_at}]`; `missing_fields`; `labels`:
    `{field, kind (class, value), samples, classes, counts, missing, neighbours (pairs with successive
    indices), switches (share of them whose labels differ), by_chance, deviations (in standard errors),
    trend}`; `order`: `{sampler, shuffled, batches, batch_size, single (batches of one class), switches,
    runs, top_share, top, lean}` of the first batches; `exact` and `near`: `{method (content; picture,
    features, shingles), compared, reason (why not), copies, groups, conflicting (with different labels),
    neighbours, natural (pairs expected by chance), share (of all samples, estimated), meant, pairs:
    [{first, second, first_label, second_label, distance}]}`; `outliers`: `[{index, why (scale, range,
    length, blank, empty), field, value, usual, farthest, feature}]`, `outlier_count`; `corrupt`:
    `[{index, error, file, line}]`, `corrupt_count`, `nothing` (how many of these are None), `past_end`
    (all indices from this one on are out of range); `mutation`: `{arrays, means, deviations}` if reading
    changes the stored data; `exhibits`: `[{about (exact, near, outlier), index, kind, caption, data}]`.
    """

    fact_kind = "data.survey"
    parse = DatasetSurvey.from_json


class BetweenFact(DocumentFact[Between]):
    """Two splits compared: `first`, `second`, `roles`, `same_dataset`, `shared` (indices of the same
    dataset that both contain), `coverage` (share of the first split that was read), `exact` and `near` as
    above (samples of the second split that are also in the first), `file`, `line`, `exhibits`.
    """

    fact_kind = "data.between"
    parse = Between.from_json


class TriedChangeFact(DocumentFact[TriedChange]):
    """By `clew profile --try`, one for each change tried on a snapshot: `name` (`torch.compile`,
    `channels_last`, `foreach`, `fused`, `bfloat16`, `threads`, `set_to_none`, `inference_mode`; empty:
    nothing could be tried), `setting` (as code), `before`, `after` (seconds per step, medians over
    `rounds` measured alternately), `spread_before`, `spread_after` (half of the interquartile range),
    `gain` (share of the time saved; negative: slower), `noise` (uncertainty of the gain), `clear` (larger
    than the noise and 5%), `once` (seconds of compiling), `difference` (`{output, loss, gradient,
    update}`, relative), `same` (no larger than rounding explains; null if not compared), `breaks`:
    `[{reason, file, line, code}]`, `reason` (why it was not tried), `what` (`step` or `evaluation`),
    `rest`.
    """

    fact_kind = "attempt"
    parse = TriedChange.from_json


class BatchSizesFact(DocumentFact[BatchSizes]):
    """By `clew profile --batch-sizes`: `rows`: `[{size, seconds, throughput, spread, rounds, peak (bytes
    of tensors in a step), process, reason (why not measured)}]`, `knee` (smallest size from which each
    doubling gains less than 10% beyond noise; null), `why`, `current` (the program's own size), `gain`
    (in samples per second, of the knee over the current size), `reason`, `hint`.
    """

    fact_kind = "batch_sizes"
    parse = BatchSizes.from_json


def tried_changes(facts: Iterable[RecordedFact]) -> tuple[list[TriedChange], BatchSizes | None]:
    """The changes and batch sizes that were tried on a snapshot, according to the facts of a run."""
    known = list(facts)
    attempts = [fact.content for fact in facts_of(TriedChangeFact, known) if fact.content is not None]
    sizes = [fact.content for fact in facts_of(BatchSizesFact, known) if fact.content is not None]
    return attempts, sizes[-1] if sizes else None


def tried_changes_json(facts: Iterable[RecordedFact]) -> dict[str, Any]:
    """The same for a report; leaves out what was not asked for."""
    attempts, sizes = tried_changes(facts)
    data: dict[str, Any] = {"attempts": [a.to_json() for a in attempts]} if attempts else {}
    return data if sizes is None else {**data, "batch_sizes": sizes.to_json()}
