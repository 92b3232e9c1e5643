"""What the checks of speed find in hand-made profiles: gains, severities, places, and nothing below 5%."""

from __future__ import annotations

from typing import Any

import pytest
from fake_run import FakeRun, findings
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.checks import catalog
from clew.checks.evidence.speed_gains import costs_of
from clew.checks.needs import fact_kinds
from clew.checks.perf.data_in_python_lists import DataInPythonLists
from clew.checks.perf.double_precision import DoublePrecision
from clew.checks.perf.eager_overhead import EagerOverhead
from clew.checks.perf.graph_in_evaluation import GraphInEvaluation
from clew.checks.perf.host_sync_in_step import HostSyncInStep
from clew.checks.perf.large_sample_transfer import LargeSampleTransfer
from clew.checks.perf.loader_worker_count import LoaderWorkerCount
from clew.checks.perf.memory_format_unfit import MemoryFormatUnfit
from clew.checks.perf.memory_growth import MemoryGrowth
from clew.checks.perf.optimizer_per_parameter import OptimizerPerParameter
from clew.checks.perf.python_bound_step import PythonBoundStep
from clew.checks.perf.slow_loader import SlowLoader
from clew.checks.perf.small_batch_throughput import SmallBatchThroughput
from clew.checks.perf.tensor_from_array_list import TensorFromArrayList
from clew.checks.runner import judge
from clew.records.finding import Severity
from clew.records.step_costs import LineCost, ModuleCost, OpCost, PartCost, Profile, Roof, Sync
from clew.records.tried_changes import BatchSizes, Break, SizeRow, TriedChange

SPEED = [kind for kind in catalog.CHECKS if "profile" in fact_kinds(kind.needs)]
SPEED += [MemoryGrowth]


def profiled(steps: int = 50, *, step: float = 0.1, cores: int = 4, **given: Any) -> FakeRun:
    """A run whose step takes so long; parts as shares of it, the rest of them computing."""
    shares = {name: given.pop(name) for name in ("data", "optimizer", "rest", "clew") if name in given}
    left = 1.0 - sum(shares.values())
    shares |= {"forward": 0.4 * left, "backward": 0.6 * left}
    parts = tuple(PartCost(name, share * step, share * step, share, steps) for name, share in shares.items())
    profile = Profile(step_median=step, parts=parts, cores=cores, detailed=8, **given)
    run = FakeRun().model(("fc", "Linear"))
    run.fact("profile", 40, **profile.to_json())
    return run


def loaded(run: FakeRun, workers: int = 0, **seen: Any) -> FakeRun:
    """The same with a loader of its own, and what was seen of it in the windows."""
    run.fact("loader", index=0, file="train.py", line=20, num_workers=workers, batch_size=32, length=32000,
             made_file="train.py", made_line=12, dataset="Photos")  # fmt: skip
    run.fact("fed", phase="train", root="model", loader=0)
    usual = {"loader": 0, "batches": 1.0, "seconds": 0.05, "cpu": 0.05, "samples": 32, "parts": []}
    return run.fact("profile.loading", 40, **{**usual, **seen})


def only(check: Any, run: FakeRun) -> Any:
    (finding,) = findings(check, run)
    return finding


# -- what all of them share --


@pytest.mark.parametrize("kind", SPEED, ids=lambda kind: kind.name)
def test_a_plain_run_asks_no_question_of_speed(kind: Any) -> None:
    verdict = judge(FakeRun().signal("loss", [1.0]).signal("memory.rss", [1e8]).view(), checks=[kind()])
    assert verdict.findings == ()
    assert all(entry.reason == "needs clew profile" and entry.unasked for entry in verdict.not_judged)
    assert (verdict.ruled_out == ("memory-growth",)) == (kind is MemoryGrowth)


@pytest.mark.parametrize("kind", SPEED, ids=lambda kind: kind.name)
def test_a_profile_that_wastes_nothing_gets_no_advice(kind: Any) -> None:
    run = loaded(profiled(data=0.01)).signal("memory.rss", [1e8] * 200)
    assert not findings(kind(), run)


@pytest.mark.parametrize("kind", SPEED, ids=lambda kind: kind.name)
def test_a_handful_of_steps_is_no_ground_for_advice(kind: Any) -> None:
    run = loaded(profiled(3, data=0.9), move=1.0, parts=[{"bytes": 8, "narrow_bytes": 1}])
    run.fact("profile.tensors", of="arrays", file="a.py", line=1, seconds=0.09, needed=0.0, step=0.1)
    run.signal("memory.rss", [1e8, 2e8, 3e8])
    assert not findings(kind(), run)


# -- data --


@pytest.mark.parametrize(
    ("share", "severity"), [(0.04, None), (0.1, Severity.ADVICE), (0.3, Severity.WARNING)]
)
def test_waiting_for_data_is_said_from_a_gain_of_five_percent_on(share: float, severity: Any) -> None:
    found = findings(SlowLoader(), loaded(profiled(data=share)))
    assert [f.severity for f in found] == ([severity] if severity else [])


def test_batches_that_are_there_at_once_are_not_worth_a_worker() -> None:
    run = loaded(profiled(step=0.002, data=0.6, threads=1))
    assert not findings(SlowLoader(), run)
    assert not findings(LoaderWorkerCount(), run)


def test_a_slow_loader_is_blamed_where_it_is_made_with_the_gain_and_the_milliseconds() -> None:
    finding = only(SlowLoader(), loaded(profiled(step=0.092, data=0.45)))
    assert (finding.site.file, finding.site.line) == ("train.py", 12)
    assert finding.evidence[0].text == "expected gain 1.82x: 41 of 92 ms per step waiting for data"


def test_clews_own_time_is_no_part_of_the_step() -> None:
    assert "50%" in only(SlowLoader(), loaded(profiled(data=0.25, clew=0.5))).message


def test_without_workers_the_number_that_hides_the_loading_is_given() -> None:
    finding = only(LoaderWorkerCount(), loaded(profiled(data=0.6, threads=1)))
    assert "num_workers=2" in finding.fix  # 60 ms of loading behind 40 ms of computing
    assert finding.evidence[0].values[0] == pytest.approx(2.5, rel=0.05)


def test_one_core_that_is_busy_hides_nothing() -> None:
    assert not findings(LoaderWorkerCount(), loaded(profiled(data=0.6, cores=1, threads=1)))


def test_loading_that_waits_for_a_disk_may_have_more_workers_than_cores() -> None:
    finding = only(LoaderWorkerCount(), loaded(profiled(data=0.8, cores=1, threads=1), cpu=0.001))
    assert "num_workers=4" in finding.fix


def test_workers_that_wait_for_training_are_enough() -> None:
    assert not findings(LoaderWorkerCount(), loaded(profiled(data=0.02), workers=2))


def test_too_few_workers_for_the_cores_are_said_to_be() -> None:
    finding = only(LoaderWorkerCount(), loaded(profiled(data=0.6, cores=16, threads=1), workers=1))
    assert "1 worker load" in finding.message
    assert "num_workers=3" in finding.fix


def test_workers_that_are_started_for_every_epoch_are_counted() -> None:
    run = loaded(profiled(data=0.01), workers=4, starts=11, starting=1.0).signal("wall", [10.0, 40.0])
    finding = only(LoaderWorkerCount(), run)
    assert "persistent_workers=True" in finding.fix
    assert finding.evidence[0].values[0] == pytest.approx(40 / 30)


def test_wide_samples_are_named_with_the_type_that_would_hold_them() -> None:
    part = {"shape": [4, 3, 768, 1024], "dtype": "int64", "bytes": 8e7, "fits": "uint8", "narrow_bytes": 1e7}
    run = loaded(profiled(data=0.5), 2, samples=4, parts=[part], move=0.02, narrow_move=0.002)
    finding = only(LargeSampleTransfer(), run)
    assert "19.1 MiB per sample as int64, but uint8 would be enough" in finding.message
    assert finding.evidence[0].values[0] == pytest.approx(1 / (1 - 0.36))
    alone = loaded(profiled(data=0.5), 0, samples=4, parts=[part], move=0.02, narrow_move=0.002)
    assert not findings(LargeSampleTransfer(), alone)


def test_lists_of_numbers_are_blamed_at_the_line_that_makes_them_tensors() -> None:
    run = profiled(data=0.5)
    run.fact(
        "profile.tensors",
        of="numbers",
        file="data.py",
        line=7,
        seconds=0.08,
        needed=0.002,
        step=0.2,
        elements=9,
    )
    finding = only(DataInPythonLists(), run)
    assert (finding.site.line, finding.severity) == (7, Severity.WARNING)
    assert finding.evidence[0].values[0] == pytest.approx(1 / 0.61)


def test_lists_in_workers_are_judged_by_what_an_item_costs() -> None:
    kept = {"loader": 0, "attribute": "rows", "of": "list", "items": 5000, "numbers": 900}
    run = loaded(profiled(data=0.5), 2).fact("profile.kept", **kept, seconds=0.002, needed=0.0)
    finding = only(DataInPythonLists(), run)  # 32 samples of 2 ms, by two workers
    assert finding.evidence[0].values[0] == pytest.approx(1 / (1 - 0.32))
    assert "self.rows = torch.tensor(self.rows)" in finding.fix


def test_a_list_of_arrays_is_blamed_and_a_cheap_one_is_not() -> None:
    run = profiled().fact(
        "profile.tensors", of="arrays", file="t.py", line=3, seconds=0.05, needed=0.0, step=0.1
    )
    assert only(TensorFromArrayList(), run).site.line == 3
    cheap = profiled().fact(
        "profile.tensors", of="arrays", file="t.py", line=3, seconds=0.004, needed=0.0, step=0.1
    )
    assert not findings(TensorFromArrayList(), cheap)


# -- precision, optimizer, evaluation --


def doubled(run: FakeRun, dtype: str) -> FakeRun:
    parameters = [{"name": "w", "module": "fc", "param": "w", "numel": 9, "dtype": dtype, "shape": [3, 3]}]
    return run.fact("model", root="model", modules=[], parameters=parameters)


def test_a_network_in_float64_gains_half_of_what_it_truly_computes() -> None:
    busy = ModuleCost("fc", self_forward=0.03, self_backward=0.06, roof=0.4)
    finding = only(DoublePrecision(), doubled(profiled(modules=(busy,)), "float64"))
    assert finding.evidence[0].values[0] == pytest.approx(1 / 0.6)
    idle = ModuleCost("fc", self_forward=0.03, self_backward=0.06, roof=0.02)
    assert not findings(DoublePrecision(), doubled(profiled(modules=(idle,)), "float64"))


def test_batches_in_float64_cost_what_moving_them_costs() -> None:
    part = {"shape": [32, 3, 512, 512], "dtype": "float64", "bytes": 2e8, "fits": "float32"}
    run = doubled(loaded(profiled(roof=Roof(1e11, 2e10)), parts=[part]), "float32")
    assert only(DoublePrecision(), run).evidence[0].values[0] == pytest.approx(1 / 0.75)


def optimised(count: int, implementation: str) -> FakeRun:
    run = profiled(optimizer=0.5, roof=Roof(1e11, 1e10))
    names = [f"layer{n}.weight" for n in range(count)]
    run.fact("optimizer", index=0, file="t.py", line=5, implementation=implementation,
             groups=[{"params": names}])  # fmt: skip
    run.facts[-1].data["class"] = "Adam"
    return run


def test_many_parameters_one_by_one_are_said_to_be_and_few_or_fused_ones_are_not() -> None:
    finding = only(OptimizerPerParameter(), optimised(200, "for-loop"))
    assert finding.fix == "torch.optim.Adam(..., fused=True)"
    assert finding.severity is Severity.WARNING
    assert not findings(OptimizerPerParameter(), optimised(20, "for-loop"))
    assert not findings(OptimizerPerParameter(), optimised(200, "fused"))


def test_what_was_measured_of_an_optimizer_counts_more_than_an_estimate() -> None:
    slower = TriedChange("fused", before=0.1, after=0.1, gain=0.0, clear=False)
    assert not findings(
        OptimizerPerParameter(), optimised(200, "for-loop").fact("attempt", **slower.to_json())
    )
    faster = TriedChange("fused", before=0.1, after=0.08, gain=0.2, clear=True)
    run = optimised(200, "for-loop").fact("attempt", **faster.to_json())
    assert only(OptimizerPerParameter(), run).evidence[0].text.startswith("measured gain 1.25x")


def test_an_evaluation_with_graphs_is_blamed_at_its_forward() -> None:
    evaluated = {"root": "model", "file": "t.py", "line": 9, "sections": 3, "run": 10.0}
    finding = only(GraphInEvaluation(), profiled().fact("profile.evaluation", **evaluated, seconds=2.0))
    assert (finding.site.line, finding.site.phase, finding.severity) == (9, "eval", Severity.ADVICE)
    assert not findings(GraphInEvaluation(), profiled().fact("profile.evaluation", **evaluated, seconds=0.1))


# -- the step itself --


def test_asking_for_numbers_one_by_one_costs_the_time_of_its_line() -> None:
    sync = Sync(".item()", 512, 0.004, "t.py", 31, "table[a.item()] += 1")
    line, whole = LineCost("t.py", 31, "train", "", 0.5, 0.5), LineCost("t.py", 1, "main", "", 0.0, 1.0)
    finding = only(HostSyncInStep(), profiled(syncs=(sync,), lines=(whole, line)))
    assert (finding.site.line, finding.severity) == (31, Severity.WARNING)
    assert "512 times a step" in finding.message


def test_a_single_item_on_a_cpu_costs_nothing_whatever_was_measured() -> None:
    assert not findings(HostSyncInStep(), profiled(syncs=(Sync(".item()", 1, 0.03, "t.py", 31),)))
    away = profiled(syncs=(Sync(".item()", 1, 0.03, "t.py", 31),), device="cuda")
    finding = only(HostSyncInStep(), away)
    assert finding.severity is Severity.ADVICE
    assert "up to" in finding.message


def test_python_is_blamed_only_for_what_torch_leaves_over() -> None:
    lines = [{"file": "t.py", "line": 8, "function": "f", "code": "x += 1", "share": 0.5}]
    run = profiled(rest=0.6).fact("profile.python", sampled=0.6, left=0.55, lines=lines)
    finding = only(PythonBoundStep(), run)
    assert (finding.site.line, finding.severity) == (8, Severity.WARNING)
    tensors = profiled(rest=0.6).fact("profile.python", sampled=0.6, left=0.1, lines=lines)
    assert not findings(PythonBoundStep(), tensors)


def test_measured_batch_sizes_name_the_knee() -> None:
    rows = tuple(SizeRow(size, throughput=float(rate)) for size, rate in ((8, 100), (64, 400), (512, 410)))
    sweep = BatchSizes(rows, knee=64, current=8)
    finding = only(SmallBatchThroughput(), loaded(profiled()).fact("batch_sizes", **sweep.to_json()))
    assert "batch_size=64" in finding.fix
    assert finding.severity is Severity.ADVICE
    enough = BatchSizes(rows, knee=64, current=64)
    assert not findings(SmallBatchThroughput(), loaded(profiled()).fact("batch_sizes", **enough.to_json()))


def test_short_operations_far_from_the_roof_are_mostly_overhead() -> None:
    def run(seconds: float, roof: float) -> FakeRun:
        ops = (OpCost("fc", "aten::linear", calls=100, forward=100 * seconds, roof=roof),)
        return profiled(step=0.002, ops=ops, roof=Roof(1e11, 1e10)).signal("batch.size", [4.0] * 20)

    assert "batch_size=16" in only(SmallBatchThroughput(), run(1e-5, 0.01)).fix
    assert not findings(SmallBatchThroughput(), run(1e-5, 0.5))
    assert not findings(SmallBatchThroughput(), run(1e-3, 0.01))


def test_detailed_steps_that_were_held_up_do_not_make_the_machine_look_busy() -> None:
    """As on a loaded machine: a few detailed steps take many times as long, their operations twice."""

    def run(**held: Any) -> FakeRun:
        ops = (OpCost("fc", "aten::linear", calls=100, forward=0.004, roof=0.04),)
        roof = Roof(1e11, 1e10)
        return profiled(step=0.002, ops=ops, roof=roof, **held).signal("batch.size", [4.0] * 20)

    assert "batch_size=16" in only(SmallBatchThroughput(), run()).fix
    assert "batch_size=16" in only(SmallBatchThroughput(), run(detailed_step=0.03)).fix


def test_one_long_hold_up_in_clew_is_not_taken_off_every_step() -> None:
    """Clew's share is of the sum of all steps, so one of them may decide it; its median is not moved."""
    parts = (PartCost("forward", 0.09, 0.09, 0.3, 50), PartCost("clew", 0.01, 5.0, 0.7, 50))
    run = FakeRun().model(("fc", "Linear"))
    run.fact("profile", 40, **Profile(step_median=0.1, parts=parts, cores=4, detailed=8).to_json())
    costs = costs_of(run.view())
    assert costs is not None
    assert costs.step == pytest.approx(0.09)
    assert costs["forward"] == pytest.approx(0.09)


# -- what was tried --


def test_compiling_is_recommended_only_if_it_was_measured_to_help() -> None:
    good = TriedChange("torch.compile", before=0.1, after=0.05, gain=0.5, clear=True, once=10.0, rounds=5,
                   same=True, difference={"loss": 1e-7}, breaks=(Break("print", "t.py", 4),))  # fmt: skip
    finding = only(EagerOverhead(), profiled().fact("attempt", **good.to_json()))
    assert (
        "compiled, a step is 2x as fast; compiling takes 10 s, which pays off after 200 steps"
        in finding.message
    )
    assert [e.site.line for e in finding.evidence if e.site] == [4]
    for change in ({"clear": False}, {"same": False}, {"gain": -0.2}):
        assert not findings(EagerOverhead(), profiled().fact("attempt", **{**good.to_json(), **change}))


def test_what_was_not_tried_is_not_judged_for_that_reason() -> None:
    for check in (EagerOverhead(), MemoryFormatUnfit()):
        (silent,) = judge(profiled().view(), checks=[check]).not_judged
        assert silent.reason == "not measured; run clew profile --try"
    refused = TriedChange("channels_last", reason="the model has no convolution")
    (silent,) = judge(
        profiled().fact("attempt", **refused.to_json()).view(), checks=[MemoryFormatUnfit()]
    ).not_judged
    assert silent.reason == "the model has no convolution"


def test_images_stored_pixel_by_pixel_are_recommended_with_the_measured_gain() -> None:
    faster = TriedChange("channels_last", before=0.1, after=0.08, gain=0.2, clear=True, rounds=7)
    finding = only(MemoryFormatUnfit(), profiled().fact("attempt", **faster.to_json()))
    assert finding.evidence[0].values == (1.25,)
    assert (finding.severity, finding.confidence) == (Severity.ADVICE, "certain")


# -- memory --


def rising(steps: int = 300, by: float = 1e6, start: float = 4e8) -> list[float]:
    return [start + by * n for n in range(steps)]


def test_growth_with_an_owner_is_a_warning_that_names_it() -> None:
    growth = {"slope": 1e6, "owner": "list `losses` in train.py:31", "file": "train.py", "line": 31}
    run = FakeRun().signal("memory.rss", rising()).fact("growth", **growth, kind="graph")
    finding = only(MemoryGrowth(), run)
    assert finding.message == "memory grows by 977 KiB per step: list `losses` in train.py:31"
    assert (finding.site.line, finding.severity) == (31, Severity.WARNING)


def test_numbers_in_a_list_are_no_leak_and_tensors_are() -> None:
    def run(kind: str, slope: float) -> FakeRun:
        flat = FakeRun().signal("memory.rss", [4e8] * 300)
        return flat.fact("growth", slope=slope, owner="list `history`", file="t.py", line=3, kind=kind)

    assert not findings(MemoryGrowth(), run("python", 100.0))
    assert not findings(MemoryGrowth(), run("tensor", 100.0))
    assert findings(MemoryGrowth(), run("tensor", 2e4))
    assert findings(MemoryGrowth(), run("python", 2e5))


def test_growth_without_an_owner_is_said_only_if_it_is_even_and_of_hundreds_of_megabytes() -> None:
    def run(values: list[float]) -> FakeRun:
        return FakeRun().signal("memory.rss", values).fact("growth", slope=1e6, owner="")

    finding = only(MemoryGrowth(), run(rising(by=4e6)))
    assert finding.confidence == "possible"
    assert not findings(MemoryGrowth(), run(rising(by=1e6)))
    assert not findings(MemoryGrowth(), run([4e8] * 290 + [9e8] * 10))
    assert not findings(MemoryGrowth(), FakeRun().signal("memory.rss", rising(by=4e6)))  # nobody looked


# -- and which explains which --


def test_a_slow_loader_is_explained_by_what_makes_it_slow() -> None:
    run = loaded(profiled(data=0.6, threads=1))
    verdict = judge(run.view(), checks=[SlowLoader(), LoaderWorkerCount()])
    assert [(f.check, f.because) for f in verdict.findings] == [
        ("loader-worker-count", ()),
        ("slow-loader", ("PERF002",)),
    ]


# -- and whatever else a file may hold --

KINDS = ("profile.loading", "profile.tensors", "profile.kept", "profile.evaluation", "profile.python")
KINDS += ("attempt", "batch_sizes", "growth", "optimizer", "model")
FIELDS = ("loader", "seconds", "cpu", "samples", "parts", "bytes", "narrow_bytes", "dtype", "move", "starts")
FIELDS += ("starting", "of", "needed", "elements", "attribute", "items", "numbers", "run", "lines", "sampled")
FIELDS += ("left", "name", "gain", "clear", "rows", "knee", "current", "slope", "owner", "groups", "params")
FIELDS += ("parameters", "numel", "file", "line", "index", "implementation", "shape", "breaks", "kind")
words = st.sampled_from(["arrays", "numbers", "list", "float64", "fused", "torch.compile", "for-loop", ""])
leaves = st.one_of(st.none(), st.booleans(), st.integers(-3, 90), st.floats(), words)
junk = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=8)
    ),
    max_leaves=12,
)
facts = st.tuples(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELDS), junk, max_size=10))


@settings(max_examples=50, deadline=None)
@given(st.lists(facts, max_size=6), st.sampled_from([0.0, 0.1, 0.9]))
def test_no_check_of_speed_fails_on_any_record(given_facts: list[Any], share: float) -> None:
    run = loaded(profiled(data=share, roof=Roof(1e9, 1e9)), workers=2).signal("memory.rss", rising())
    for kind, data in given_facts:
        run.fact(kind, 5, **data)
    verdict = judge(run.view(), checks=[kind() for kind in SPEED])
    assert [n.reason for n in verdict.not_judged if "check failed" in n.reason] == []
    assert all(found.fix and found.evidence for found in verdict.findings)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.sampled_from(["parts", "ops", "modules", "syncs", "step_median", "roof"]), junk))
def test_a_profile_of_any_shape_is_read_or_left_alone(data: dict[str, Any]) -> None:
    verdict = judge(FakeRun().fact("profile", 0, **data).view(), checks=[kind() for kind in SPEED])
    assert [n.reason for n in verdict.not_judged if "check failed" in n.reason] == []
