"""What became slower between two profiles: noise is told from change."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from golden_files import Paper, assert_golden
from sample_profiles import MB, convolutions, hostile, module, transformer

from clew.records.step_costs import ModuleCost, PartCost, Profile, Roof, StepMemory
from clew.render.profile.profile_diff import (
    GONE,
    LARGER,
    NEW,
    NOISE,
    SLOWER,
    ProfileDiff,
    compare,
    ordered,
    to_json,
)
from clew.render.profile.profile_diff_terminal import render_comparison
from clew.render.verdict_json import dumps
from clew.store.read.run_metadata import RunMeta


def drawn(comparison: ProfileDiff, *, width: int = 80, full: bool = False, encoding: str = "utf-8") -> str:
    paper = Paper(encoding)
    render_comparison(comparison, paper, width=width, full=full)
    return paper.getvalue()


def slower_convolution() -> Profile:
    """The first convolution takes twice its time, and a module is new."""
    a = convolutions()
    more = a.modules[2].total
    slow = {"": more, "features": more, "features.0": more}
    modules = [
        replace(m, forward=m.forward + slow.get(m.module, 0.0)) for m in a.modules if m.module != "classify"
    ]
    parts = [
        replace(p, median=p.median + more, p95=p.p95 + more) if p.name == "forward" else p for p in a.parts
    ]
    return replace(
        a,
        step_median=a.step_median + more,
        step_p95=a.step_p95 + more,
        samples_per_second=64 / (a.step_median + more),
        modules=(*modules, module("aux", "Linear", 0.004, 0.001)),
        parts=tuple(parts),
        memory=replace(a.memory, peak=80 * MB, kinds={**a.memory.kinds, "activations": 64 * MB}),
        ops=(replace(a.ops[0], forward=a.ops[0].forward + more), *a.ops[1:]),
    )


def both() -> ProfileDiff:
    return compare(convolutions(), slower_convolution(), ("20261115-before", "20261115-after"))


@pytest.mark.parametrize("width", [80, 120])
def test_comparison_at_width(width: int) -> None:
    text = drawn(both(), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert_golden(f"comparison_at_{width}", text)


def test_the_module_that_is_slower_is_named_not_those_around_it() -> None:
    told = ordered(both().modules)
    assert [(c.name, c.verdict) for c in told] == [("features.0", SLOWER), ("aux", NEW), ("classify", GONE)]
    around = {c.name: c for c in both().modules}
    assert around["features"].verdict == SLOWER
    assert around["features"].explained


def test_where_no_module_stands_out_of_a_slower_step_the_largest_are_named_as_noise() -> None:
    a = convolutions()
    noisy = [replace(m, spread=m.total) for m in slower_convolution().modules if m.module != "aux"]
    b = replace(slower_convolution(), modules=(*noisy, a.modules[-1]))
    text = drawn(compare(a, b))
    row = next(line for line in text.splitlines() if line.startswith("features.0"))
    assert row.endswith("within the noise")
    assert "(model)" not in text


def test_a_profile_compared_with_itself_is_all_noise() -> None:
    same = compare(transformer(), transformer())
    assert same.step.verdict == NOISE
    assert not [c for c in (*same.parts, *same.modules, *same.ops, *same.memory) if c.significant]
    assert "the same within the noise" in drawn(same)


def measured(rng: random.Random, mean: float, spread: float, steps: int = 16) -> ModuleCost:
    times = [max(rng.gauss(mean, spread), 0.0) for _ in range(steps)]
    return ModuleCost("fc", "Linear", 1.0, fmean(times), 0.0, spread=stdev(times), steps=steps)


def of(module: ModuleCost, step: float = 0.03) -> Profile:
    part = PartCost("forward", module.total, 1.2 * module.total, 0.3, 200)
    return Profile(step_median=step, step_p95=1.1 * step, parts=(part,), modules=(module,), detailed=16)


def test_repeated_noisy_measurements_of_the_same_give_no_alarm() -> None:
    rng = random.Random(0)
    wrong = 0
    for _ in range(300):
        a, b = (of(measured(rng, 0.01, 0.002)) for _ in range(2))
        wrong += compare(a, b).modules[0].significant
    assert wrong == 0


def test_a_real_slowdown_is_seen_through_the_noise() -> None:
    rng = random.Random(0)
    seen = sum(
        compare(of(measured(rng, 0.01, 0.001)), of(measured(rng, 0.013, 0.001))).modules[0].verdict == SLOWER
        for _ in range(100)
    )
    assert seen >= 98


@pytest.mark.parametrize(
    ("change", "verdict"),
    [(0.0105, NOISE), (0.0112, SLOWER)],  # 5% may be the day, 12% is not
)
def test_a_tiny_but_steady_difference_is_no_news(change: float, verdict: str) -> None:
    a, b = (ModuleCost("fc", "Linear", 1, t, 0.0, spread=1e-6, steps=50) for t in (0.01, change))
    assert compare(of(a), of(b)).modules[0].verdict == verdict


def test_what_is_little_of_a_step_is_no_news_however_sure() -> None:
    a, b = (ModuleCost("fc", "Linear", 1, t, 0.0, spread=1e-7, steps=50) for t in (1e-4, 2e-4))
    assert compare(of(a), of(b)).modules[0].verdict == NOISE


def test_without_a_spread_only_large_differences_count() -> None:
    a, b = (ModuleCost("fc", "Linear", 1, t, 0.0) for t in (0.01, 0.014))
    assert compare(of(a), of(b)).modules[0].verdict == NOISE
    known = [replace(side, spread=1e-4, steps=20) for side in (a, b)]
    assert compare(of(known[0]), of(known[1])).modules[0].verdict == SLOWER


def test_another_type_under_the_same_name_is_another_module() -> None:
    a = of(module("fc", "Linear", 0.005, 0.005))
    b = of(module("fc", "Bilinear", 0.005, 0.005))
    assert [(c.type, c.verdict) for c in compare(a, b).modules] == [("Linear", GONE), ("Bilinear", NEW)]


def test_ops_are_compared_whatever_their_shapes() -> None:
    a = convolutions()
    b = replace(a, ops=tuple(replace(op, shapes="[1]", forward=3 * op.forward) for op in a.ops))
    told = {c.name: c.verdict for c in compare(a, b).ops}
    assert told["convolution in features.0"] == SLOWER
    assert NEW not in told.values()


def test_other_conditions_are_said_first() -> None:
    a = convolutions()
    b = replace(a, threads=1, device="cuda", samples_per_second=3100.0, roof=Roof(9e9, 1e9))
    about = (
        RunMeta(hostname="one", versions={"torch": "2.12.0"}, args=("--lr", "1")),
        RunMeta(hostname="two", versions={"torch": "2.13.0"}, args=("--lr", "2")),
    )
    text = drawn(compare(a, b, about=about))
    lines = text.splitlines()
    assert lines[2:10] == [
        "differs    machine: one and two",
        "differs    device: cpu and cuda",
        "differs    threads: 2 and 1",
        "differs    torch: 2.12.0 and 2.13.0",
        "differs    arguments: --lr 1 and --lr 2",
        "differs    samples per step: about 64 and 128; times are per step",
        "differs    peak speed of the machine: 42 GFLOP/s and 9 GFLOP/s",
        "a step is the same within the noise: 41.2 ms → 41.2 ms (±1.66 ms)",
    ]
    assert "differs" not in drawn(compare(a, a, about=(about[0], about[0])))


def test_where_all_modules_changed_by_the_same_factor_the_machine_is_suspected() -> None:
    a = convolutions()
    slow = [replace(m, forward=1.6 * m.forward, backward=1.5 * m.backward) for m in a.modules]
    b = replace(a, modules=tuple(slow), step_median=1.5 * a.step_median, samples_per_second=1036.0)
    found = compare(a, b).differences
    assert found == ("all modules take 1.5x the time: was the machine busier, or the input larger?",)
    assert both().differences == ()


def test_memory_that_is_larger_is_listed_by_kind() -> None:
    told = {c.name: c.verdict for c in both().memory}
    assert told["tensors at the peak"] == LARGER
    assert told["activations"] == LARGER
    assert told["parameters"] == NOISE
    nothing = compare(Profile(), Profile(memory=StepMemory()))
    assert nothing.memory == ()


def test_empty_profiles_are_compared_without_a_word_too_many() -> None:
    assert "neither run has a timed step" in drawn(compare(Profile(), Profile()))
    assert drawn(compare(Profile(), convolutions()))


def test_hostile_names_are_shown_not_obeyed() -> None:
    text = drawn(compare(hostile(), convolutions(), ("\x1b[31m", "b")), full=True)
    assert not [c for c in text if c != "\n" and not c.isprintable()]
    assert drawn(both(), encoding="ascii").isascii()


def test_the_json_form_holds_everything() -> None:
    data = json.loads(dumps(to_json(both())))
    assert data["names"] == ["20261115-before", "20261115-after"]
    assert data["step"]["verdict"] == "slower"
    assert len(data["modules"]) == 7
    assert {"kind", "name", "before", "after", "verdict", "error", "type", "explained"} == set(
        data["modules"][0]
    )
