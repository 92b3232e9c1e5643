"""What must hold of every check, whatever was recorded."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from fake_run import FakeRun
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.checks import catalog
from clew.checks.runner import judge
from clew.records.site import Site

SIGNALS = (
    "loss", "grad.norm", "grad.stale", "lr", "lr.1", "batch.size", "mode.training", "loss_input.simplex",
    "activation.dead_fraction", "activation.saturated", "activation.mean", "activation.std", "gradient.norm",
    "weight.norm", "update.norm",
    "update.ratio", "first_input.mean", "first_input.std", "first_input.min", "first_input.max",
    "first_input.feature_spread", "input.min", "input.max", "input.mean", "input.std", "input.nonfinite",
    "target.min", "target.max", "target.given", "target.calls", "target.mean", "target.std", "batch.hash",
    "sample.count", "sample.distinct", "sample.constant", "sample.seen", "sample.relabelled", "sample.sliced",
    "label.switches", "label.top_share", "label.first", "label.count", "label.classes", "label.accuracy",
    "eval_input.mean", "eval_input.std", "eval.source", "eval.samples", "eval.seen", "eval.known",
    "pretrained.shift", "pretrained.scale", "loss_input.mean", "loss_input.std", "events.pattern",
    "grad.lost", "grad.present", "mode.evaluation", "evaluation.batches", "clip.norm", "clip.limit",
)  # fmt: skip
FACTS = (
    "model", "parameters", "optimizer", "loss", "broadcast", "mode", "nonfinite", "loader", "fed", "labels",
    "label_signal", "confusion", "dataset_changed", "pattern", "structure",
)  # fmt: skip
LOOP_FACTS = (
    "graph", "optimizer_use", "scheduler", "untied", "state_loaded", "loss_cut", "backward"
)  # fmt: skip
KEYS = (
    "root", "class", "file", "line", "modules", "parameters", "path", "name", "module", "param", "shape",
    "items", "requires_grad", "has_grad", "optimizer", "loaded", "init_like", "ndim", "root_training",
    "kind", "input_shape", "prediction_shape", "target_shape", "result_shape", "training",
    "mode_dependent", "where", "bad_inputs", "bad_weights", "counts", "loader", "source", "phase", "index",
    "length", "batch_size", "names", "random", "generator", "num_workers", "epoch", "array", "mean",
    "groups", "lr", "weight_decay", "params", "pairs", "biases", "dropouts", "squashing", "first", "then",
    "kinds", "widths", "kernels", "grouped", "through", "p", "norm", "layer", "op", "into", "alike",
    "reached", "cut", "idle", "cuts", "unregistered", "norms", "stepped", "held", "with_grad", "outside",
    "backwards", "steps", "early", "second", "how", "keys", "missing", "unexpected", "id", "pattern",
)  # fmt: skip

numbers = st.one_of(
    st.floats(width=32), st.sampled_from([0.0, 1.0, float("nan"), float("inf"), -float("inf")])
)
values = st.one_of(
    st.lists(numbers, max_size=5),
    st.tuples(numbers, numbers, st.integers(20, 70)).map(lambda t: [t[0]] * (t[2] // 2) + [t[1]] * t[2]),
)
sites = st.builds(
    Site,
    module=st.sampled_from([None, "", "a", "b", "c"]),
    op=st.sampled_from([None, "relu", "step"]),
    file=st.sampled_from([None, "train.py"]),
    line=st.sampled_from([None, 3]),
    phase=st.sampled_from([None, "train", "eval"]),
    root=st.sampled_from([None, "model", "other"]),
    param=st.sampled_from([None, "weight", "bias"]),
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 40),
    st.floats(),
    st.sampled_from(["model", "a", "weight", "Linear", ""]),
)
junk = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KEYS), inner, max_size=8)
    ),
    max_leaves=20,
)


@st.composite
def runs(draw: st.DrawFn) -> FakeRun:
    run = FakeRun()
    for name, site, column in draw(
        st.lists(st.tuples(st.sampled_from(SIGNALS), sites, values), max_size=12, unique_by=lambda t: t[:2])
    ):
        run.signal(name, column, site)
    for kind in draw(st.lists(st.sampled_from(FACTS + LOOP_FACTS), max_size=6)):
        run.fact(
            kind, draw(st.integers(0, 9)), **draw(st.dictionaries(st.sampled_from(KEYS), junk, max_size=10))
        )
    if draw(st.booleans()):
        run.model(("a", "Linear"), ("b", "Sigmoid"), ("c", "Linear"))
    return run


@settings(max_examples=300, deadline=None)
@given(runs())
def test_no_check_fails_on_any_record(run: FakeRun) -> None:
    verdict = judge(run.view())
    assert [n.reason for n in verdict.not_judged if "check failed" in n.reason] == []
    names = [f.check for f in verdict.findings] + [n.check for n in verdict.not_judged]
    assert len(names) == len(set(names))
    ids = [f.id for f in verdict.findings]
    for n, found in enumerate(verdict.findings):
        assert found.message
        assert found.fix
        assert set(found.because) <= set(ids[:n]), "a cause stands before its effect"


@settings(max_examples=100, deadline=None)
@given(runs())
def test_the_same_records_give_the_same_verdict_twice(run: FakeRun) -> None:
    assert as_text(judge(run.view())) == as_text(judge(run.view()))


@settings(max_examples=100, deadline=None)
@given(runs(), st.integers(0, 99))
def test_the_order_of_recording_does_not_decide_what_is_found(run: FakeRun, seed: int) -> None:
    shuffled = FakeRun()
    shuffled.facts, shuffled.last_step = run.facts, run.last_step
    for name, columns in run._columns.items():
        items = list(columns.items())
        random.Random(seed).shuffle(items)
        shuffled._columns[name] = dict(items)
    assert severities(shuffled) == severities(run)


@pytest.mark.parametrize("kind", catalog.CHECKS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("column", [[], [float("nan")], [0.0], [1.0], [float("inf")] * 60])
def test_next_to_nothing_is_never_an_alarm(kind: Any, column: list[float]) -> None:
    if kind.name == "non-finite" and column and not np.isfinite(column[0]):
        column = [0.0] * len(column)  # a single NaN is all it needs
    run = FakeRun().model(("a", "Linear"))
    for name in SIGNALS:
        run.signal(name, column, Site("a", root="model", param="weight"))
    assert judge(run.view(), checks=[kind()]).findings == ()


def severities(run: FakeRun) -> dict[str, str]:
    return {f.check: f.severity.value for f in judge(run.view()).findings}


def as_text(verdict: Any) -> str:
    return repr([f.to_json() for f in verdict.findings]) + repr(verdict.not_judged)
