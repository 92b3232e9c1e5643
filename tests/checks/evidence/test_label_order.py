"""unshuffled-data and single-label-batches: two readings of the same signals."""

from __future__ import annotations

from data_runs import LOOP, LOSS_CALL, ROOT, fed, labels, loader
from fake_run import NOWHERE, FakeRun, findings

from clew.checks.data.single_label_batches import SingleLabelBatches
from clew.checks.data.unshuffled_data import UnshuffledData
from clew.records.finding import Severity

UNSHUFFLED, SINGLE = UnshuffledData(), SingleLabelBatches()
SORTED = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0]
MIXED = [0.0, 2.0, 1.0, 0.0, 1.0, 2.0, 0.0, 1.0]
IN_ORDER = {"shuffle": False, "sampler": "SequentialSampler"}


def run(
    first: list[float], switches: float = 0.0, top: float = 1.0, batch: int = 32, **of_loader: object
) -> FakeRun:
    made = fed(loader(FakeRun(), **of_loader))
    n = len(first)
    for name, values in {"switches": [switches] * n, "top_share": [top] * n, "first": first}.items():
        made.signal(f"label.{name}", values, LOSS_CALL)
    made.signal("label.count", [float(batch)] * n, LOSS_CALL)
    made.signal("batch.hash", [float(i) for i in range(n)], ROOT).signal("batch.size", [32.0] * n, NOWHERE)
    return labels(made, [[0, 100, 0], [1, 100, 0], [2, 100, 0]])


def test_sorted_labels_are_a_warning_at_the_loaders_loop() -> None:
    (found,) = findings(UNSHUFFLED, run(SORTED, **IN_ORDER))
    assert (found.severity, found.site.file, found.site.line) == (Severity.WARNING, *LOOP)
    assert "0% of neighbouring samples differ in class, 67% would in random order" in found.message
    assert found.fix == "DataLoader(dataset, batch_size=32, shuffle=True)"
    assert not findings(SINGLE, run(SORTED, **IN_ORDER))


def test_a_quarter_of_the_mixing_of_chance_is_sorted_and_a_little_more_is_not() -> None:
    assert findings(UNSHUFFLED, run(SORTED, switches=0.16, top=0.9, **IN_ORDER))
    assert not findings(UNSHUFFLED, run(SORTED, switches=0.17, top=0.9, **IN_ORDER))


def test_the_same_order_in_every_epoch_is_advice_after_two_of_them() -> None:
    (found,) = findings(UNSHUFFLED, run(MIXED, switches=0.6, top=0.4, length=128, **IN_ORDER))
    assert found.severity == Severity.ADVICE
    assert not findings(UNSHUFFLED, run(MIXED, switches=0.6, top=0.4, length=129, **IN_ORDER))
    assert not findings(UNSHUFFLED, run(MIXED, switches=0.6, top=0.4, length=128))


def test_seven_batches_give_no_verdict() -> None:
    short = run(SORTED[:7], **IN_ORDER)
    assert not findings(UNSHUFFLED, short)
    assert not findings(SINGLE, run(MIXED[:7]))
    assert UNSHUFFLED.unjudged(short.view()) == "needs 8 sampled batches of classes, has 7"


def test_one_class_a_batch_in_changing_order_is_another_fault() -> None:
    (found,) = findings(SINGLE, run(MIXED, **IN_ORDER))
    assert (found.severity, found.site.line) == (Severity.WARNING, LOOP[1])
    assert "100% of the batches contain only one class, out of 3 classes" in found.message
    assert not findings(UNSHUFFLED, run(MIXED))


def test_batches_of_three_hold_one_class_by_chance() -> None:
    assert findings(SINGLE, run(MIXED, batch=4))
    assert not findings(SINGLE, run(MIXED, batch=3))


def test_a_batch_with_two_classes_is_mixed() -> None:
    assert not findings(SINGLE, run(MIXED, switches=0.1, top=0.97))


def test_nothing_is_said_of_a_single_batch_or_a_single_class() -> None:
    one_batch = run(SORTED, **IN_ORDER)
    one_batch._columns["batch.hash"] = {ROOT: ([0, 1], [7.0, 7.0])}
    assert not findings(UNSHUFFLED, one_batch)
    one_class = run([0.0] * 8, **IN_ORDER)
    one_class.facts = [f for f in one_class.facts if f.kind != "labels"]
    assert not findings(UNSHUFFLED, labels(one_class, [[0, 300, 0]]))


def test_positives_before_negatives_in_every_batch_are_no_sorted_data() -> None:
    first = [0.0] * 8
    assert findings(UNSHUFFLED, run(first, switches=0.03, top=0.54, **IN_ORDER))
    assert not findings(UNSHUFFLED, run(first, switches=0.03, top=0.53, length=10**6, **IN_ORDER))
