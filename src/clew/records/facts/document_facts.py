"""Facts whose content has its own dataclasses, also written to files: profiles, surveys, experiments."""

from __future__ import annotations

from typing import Any

from clew.records.dataset_survey import Between, DatasetSurvey
from clew.records.facts.fact import DocumentFact
from clew.records.sample_views import Failure, LoaderView
from clew.records.step_costs import Profile
from clew.records.tried_changes import Attempt, BatchSizes


class ProfileFact(DocumentFact[Profile]):
    """By `clew profile`, once, at the end: `traces/profile.json` (docs/api.md) without its trees and its
    timeline, with the 60 modules, operations and lines that take longest. `parts` are of all steps that
    were only timed; `modules` and `ops` of the `detailed` ones, whose mean length is `detailed_step`;
    `unattributed` is what no part, module or operation accounts for.
    """

    fact_kind = "profile"
    parse = Profile.from_json


class LoaderViewFact(DocumentFact[LoaderView]):
    """By `clew data`: one loader, or what stands in for one. `name`, `role` (`train`, `eval`, empty),
    `number` (of its `loader` fact, null if it was not iterated), `kind` (`map`, `iterable`, `batches`:
    handed over as such, `model`: no loader was seen, these are a model's inputs), `file`, `line`,
    `dataset`, `length`, `batch_size`, `workers`, `sampler`, `shuffled`, `stages` (names, as a sample passes
    them), `batch` and `inputs` (as the loader delivers it, as the model got it: `[{name, type, dtype,
    shape, low, high, mean, std, bad (values that are not finite), text}]`), `remarks` (what matters about
    the values), `notes` (what could not be seen, and why).
    """

    fact_kind = "data.loader"
    parse = LoaderView.from_json

    def to_json(self) -> dict[str, Any]:
        """Without the views of samples: those are in the run's `data/`."""
        return self.content.to_fact() if self.content is not None else {}


class LoaderFailureFact(DocumentFact[Failure]):
    """An exception that came out of a loader and ended the program, traced back by reading the samples
    again: `kind` (`sample`, `collate`, `killed`: a worker died, `unpicklable`, `not reproduced`), `error`,
    `loader`, `worker`, `indices` (of the batch), `index` (of the sample that fails), `stage`, `frames`
    (`[{file, line, function, code}]`, the user's own), `look` (what the stage was given), `details`
    (samples that do not stack, parts that can't be pickled), `hint`, `notes`.
    """

    fact_kind = "data.failure"
    parse = Failure.from_json


class SurveyFact(DocumentFact[DatasetSurvey]):
    """What a look through a dataset found, one for each. `split` (name of the loader), `role` (`train`,
    `eval`), `dataset` (class), `loader` (number, -1: none), `file`, `line`, `total` (samples there are,
    null if unknown), `looked` (read without error), `seconds`, `stopped` (why it ended early), `random`
    (reading draws random numbers: `seeded`, `unseeded`), `stacked` (batches are made by default_collate);
    `fields`: `[{name, role (input, label, other), kind (image, vector, wave, tokens, number, text, array,
    object), samples, shapes and dtypes: [{what, samples, first}], low, high, mean, std, level and contrast
    (mean and standard deviation of a sample, at the median), level_spread, contrast_spread, zeros (share),
    whole, nonfinite (values), nonfinite_samples, nonfinite_at, features, constant (features that never
    vary), constant_at, spread (largest over median standard deviation of the columns), blank, blank_at,
    empty, empty_at}]`; `missing_fields`; `labels`: `{field, kind (class, value), samples, classes, counts,
    missing, neighbours (pairs with successive indices), switches (share whose labels differ), by_chance,
    deviations (in standard errors), trend}`; `order`: `{sampler, shuffled, batches, batch_size, single
    (batches of one class), switches, runs, top_share, top, lean}` of the first batches; `exact` and `near`:
    `{method (content; picture, features, shingles), compared, reason (why not), copies, groups, conflicting
    (with different labels), neighbours, natural (pairs that chance would make), share (of all samples,
    estimated), meant, pairs: [{first, second, first_label, second_label, distance}]}`; `outliers`:
    `[{index, why (scale, range, length, blank, empty), field, value, usual, farthest, feature}]`,
    `outlier_count`; `corrupt`: `[{index, error, file, line}]`, `corrupt_count`, `nothing` (of these, None),
    `past_end` (from this index on all are out of range); `mutation`: `{arrays, means, deviations}` if
    reading changes what is stored; `exhibits`: `[{about (exact, near, outlier), index, kind, caption,
    data}]`.
    """

    fact_kind = "data.survey"
    parse = DatasetSurvey.from_json


class BetweenFact(DocumentFact[Between]):
    """Two splits compared: `first`, `second`, `roles`, `same_dataset`, `shared` (indices of one dataset
    that both hold), `coverage` (of the first that was looked at), `exact` and `near` as above, counting
    samples of the second that are in the first, `file`, `line`, `exhibits`.
    """

    fact_kind = "data.between"
    parse = Between.from_json


class AttemptFact(DocumentFact[Attempt]):
    """By `clew profile --try`, one for each change tried on a snapshot: `name` (`torch.compile`,
    `channels_last`, `foreach`, `fused`, `bfloat16`, `threads`, `set_to_none`, `inference_mode`; empty:
    nothing could be tried), `setting` (as code), `before`, `after` (seconds per step, medians over `rounds`
    made in turn), `spread_before`, `spread_after` (half of the middle half), `gain` (share of the time
    saved; negative: it costs), `noise` (how far off that may be), `clear` (beyond noise and 5 %), `once`
    (seconds of compiling), `difference` (`{output, loss, gradient, update}`, relative), `same` (no more
    than rounding makes; null if not compared), `breaks`: `[{reason, file, line, code}]`, `reason` (why it
    was not tried), `what` (`step` or `evaluation`), `rest`.
    """

    fact_kind = "attempt"
    parse = Attempt.from_json


class BatchSizesFact(DocumentFact[BatchSizes]):
    """By `clew profile --batch-sizes`: `rows`: `[{size, seconds, throughput, spread, rounds, peak (bytes of
    tensors in a step), process, reason (why not measured)}]`, `knee` (smallest size from which each
    doubling gains less than 10 % beyond noise; null), `why`, `current` (the program's own), `gain` (of the
    knee over it, in samples per second), `reason`, `hint`.
    """

    fact_kind = "batch_sizes"
    parse = BatchSizes.from_json
