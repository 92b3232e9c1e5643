from __future__ import annotations

from data_runs import INPUT, LOOP, fed, loader
from fake_run import NOWHERE, FakeRun, findings

from clew.checks.data.augmentation_repeats import AugmentationRepeats
from clew.records.finding import Severity

CHECK = AugmentationRepeats()


def run(later: list[float], random: bool = True, distinct: float = 1.0) -> FakeRun:
    """Two batches make an epoch."""
    made = fed(loader(FakeRun(), length=64, random=random))
    seen = [0.0, 0.0, 1.0, *later]
    made.signal("sample.seen", seen, INPUT).signal("sample.distinct", [distinct] * len(seen), INPUT)
    return made.signal("batch.size", [32.0] * len(seen), NOWHERE)


def test_samples_that_come_back_bit_by_bit_are_a_warning_at_the_loaders_loop() -> None:
    (found,) = findings(CHECK, run([1.0] * 5))
    assert (found.severity, found.site.file, found.site.line) == (Severity.WARNING, *LOOP)


def test_one_batch_that_differs_shows_that_something_is_drawn() -> None:
    assert not findings(CHECK, run([1.0] * 5 + [0.99]))


def test_data_without_random_transforms_comes_back_as_it_should() -> None:
    assert not findings(CHECK, run([1.0] * 5, random=False))


def test_data_full_of_copies_is_not_judged() -> None:
    assert not findings(CHECK, run([1.0] * 5, distinct=0.98))


def test_too_few_batches_after_the_first_epoch_give_no_verdict() -> None:
    assert not findings(CHECK, run([1.0] * 2))


def test_pairs_of_samples_are_drawn_anew_though_each_is_known() -> None:
    made = run([1.0] * 6)
    made._columns["sample.seen"][INPUT][0][:] = [0, 0, 1, 1, 2, 2, 3, 3, 4]
    assert not findings(CHECK, made)
