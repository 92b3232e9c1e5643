"""padding-waste on hand-made numbers: the saving must be worth it."""

from __future__ import annotations

from dataclasses import replace

from fake_run import FakeRun, findings

from clew.checks.perf.padding_waste import PaddingWaste
from clew.records.facts.loader_facts import measured_facts
from clew.records.finding import Finding, Severity
from clew.records.loader_speed import MeasuredLoader, Padding, Paddings, Rate, Speeds

PADDED = Padding(
    "ids", how="samples", batches=10, samples=320, share=0.6, longest=0.6, bucketed=0.1, shortest_length=5,
    median_length=20, p95_length=90, longest_length=120, padded_to=80,
)  # fmt: skip


def judged(padding: Padding, wait: float | None = None) -> list[Finding]:
    speeds = Speeds(Rate(100), Rate(100), Rate(50), "training step", 32, wait)
    measured = MeasuredLoader("train_loader", "train.py", 12, speeds, paddings=Paddings((padding,), 10))
    run = FakeRun()
    for fact in measured_facts(measured):
        run.fact(fact.fact_kind, 0, **fact.to_json())
    return findings(PaddingWaste(), run)


def test_a_batch_that_is_mostly_filler_is_advice_with_the_gain() -> None:
    [found] = judged(PADDED)
    assert found.severity is Severity.ADVICE
    assert found.message.startswith("60% of ids is padding")
    assert "up to 2.2x" in found.message  # 0.4 / 0.9 of the elements remain
    assert (found.site.file, found.site.line) == ("train.py", 12)
    assert "similar length" in found.fix


def test_padding_to_a_fixed_length_has_a_fix_of_its_own() -> None:
    [found] = judged(replace(PADDED, longest=0.15, padded_to=512))
    assert "padded to 512" in found.message
    assert "pad to the longest" in found.fix


def test_where_little_is_saved_nothing_is_said() -> None:
    assert judged(replace(PADDED, share=0.6, longest=0.6, bucketed=0.55)) == []
    assert judged(replace(PADDED, share=0.1, longest=0.1, bucketed=0.0)) == []


def test_where_training_only_waits_for_data_nothing_is_said() -> None:
    assert judged(PADDED, wait=0.95) == []
    [found] = judged(PADDED, wait=0.5)
    assert "up to 1.38x" in found.message


def test_few_samples_or_batches_say_nothing() -> None:
    assert judged(replace(PADDED, samples=31)) == []
    assert judged(replace(PADDED, batches=3)) == []


def test_short_sequences_cost_nothing() -> None:
    assert judged(replace(PADDED, longest_length=31)) == []
    assert len(judged(replace(PADDED, longest_length=32))) == 1


def test_lengths_known_only_by_a_value_make_it_less_sure() -> None:
    assert judged(PADDED)[0].confidence == "likely"
    assert judged(replace(PADDED, how="pad value 0"))[0].confidence == "possible"


def test_a_position_is_spoken_of_as_a_field() -> None:
    assert "of field 0 is padding" in judged(replace(PADDED, field="0"))[0].message


def test_a_broken_fact_is_no_finding() -> None:
    run = FakeRun().fact(
        "data.padding", loader=3, measured={"fields": [{"field": 7}, "x"], "batches": "many"}
    )
    assert findings(PaddingWaste(), run) == []
