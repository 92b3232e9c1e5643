import pickle
import random
import subprocess
import sys
import types
import warnings
from types import SimpleNamespace

import pytest

from clew.hooks.entry.guard import INJECT, Guard
from clew.hooks.entry.patches import Patches
from clew.hooks.seams.module_seam import ModelFollower
from clew.hooks.steps.optimizer_steps import Cycle
from clew.hooks.steps.sampling_budget import AIM, CREDIT, DENSE_STEPS, SPARSE_EVERY, SamplingBudget
from clew.hooks.steps.step_clock import Pattern, fold


def drive(sampler, steps, cost, step_time):
    taken = []
    for step in range(steps):
        sampled = sampler.wants(step)
        own = cost if sampled else 0.0
        sampler.account(step, sampled, own, step_time + own)
        taken += [step] if sampled else []
    return taken


def test_first_steps_are_sampled_densely_and_later_ones_at_intervals():
    taken = drive(SamplingBudget(0.02), 200, cost=1e-4, step_time=0.01)
    assert taken[:DENSE_STEPS] == list(range(DENSE_STEPS))
    assert all(
        b - a >= min(SPARSE_EVERY, 0.2 * a)
        for a, b in zip(taken[DENSE_STEPS:], taken[DENSE_STEPS + 1 :], strict=False)
    )


def test_a_costly_sample_is_taken_only_as_often_as_the_budget_allows():
    sampler = SamplingBudget(0.02)
    drive(sampler, 20_000, cost=0.05, step_time=0.01)
    assert sampler.spent <= CREDIT + 2 * 0.05 + 0.02 * sampler.elapsed


def test_the_start_credit_gives_later_steps_only_a_few_samples():
    sampler = SamplingBudget(0.02)
    taken = drive(sampler, 20_000, cost=1e-3, step_time=1e-3)
    later = [step for step in taken if step > DENSE_STEPS]
    assert len(later) * 1e-3 <= AIM * 0.02 * 20.0 + 35e-3
    assert len(later) >= 0.9 * AIM * 0.02 * 20.0 / 1e-3


def test_a_short_run_is_seen_to_its_end_though_its_budget_is_small():
    taken = drive(SamplingBudget(0.02), 240, cost=1e-2, step_time=2e-3)
    assert len([step for step in taken if step > DENSE_STEPS]) >= 8
    assert taken[-1] > 180


def test_sampling_goes_on_where_plain_steps_alone_use_up_the_budget():
    sampler = SamplingBudget(0.02)
    taken = 0
    for step in range(20_000):
        sampled = sampler.wants(step)
        taken += sampled
        sampler.account(step, sampled, 1e-3 if sampled else 5e-5, 1e-3)
    assert taken > DENSE_STEPS + 20


def test_every_step_mode_samples_every_step():
    assert drive(SamplingBudget(0.02, every_step=True), 50, cost=1.0, step_time=0.001) == list(range(50))


def test_a_stopped_sampler_samples_no_more():
    sampler = SamplingBudget(0.02, every_step=True)
    sampler.stop()
    assert drive(sampler, 5, cost=0.0, step_time=1.0) == []


def test_repeats_in_the_order_of_events_are_folded():
    assert "".join(fold(list("dzfbs"))) == "dzfbs"
    assert "".join(fold(list("dedededezfbs"))) == "(de)+zfbs"
    assert "".join(fold(list("eeeezfbs"))) == "e+zfbs"
    assert "".join(fold(list("dfbdfbdfbs"))) == "(dfb)+s"


def test_equal_steps_have_equal_patterns_whatever_the_length_of_an_evaluation():
    announced = []
    pattern = Pattern(lambda number, text: announced.append((number, text)))
    numbers = []
    for evaluations in (3, 700, 3, 5):
        for _ in range(evaluations):
            pattern.add("d")
            pattern.add("e")
        pattern.add("f")
        pattern.add("s", 1)
        numbers.append(pattern.close())
    assert len(set(numbers)) == 1
    assert announced == [(0, "(de)+fs1")]


def ends(sequence):
    cycle = Cycle()
    return [cycle.ends_with(index) for index in sequence]


def test_every_step_of_a_single_optimizer_ends_a_step():
    assert ends([0, 0, 0]) == [True, True, True]


def test_a_round_of_two_optimizers_is_a_step_once_it_is_known():
    assert ends([0, 1, 0, 1, 0, 1]) == [True, False, False, True, False, True]


def test_several_critic_steps_belong_to_one_generator_step():
    assert ends([0, 0, 1, 0, 0, 1, 0, 0, 1])[3:] == [False, False, True, False, False, True]


def test_an_optimizer_of_a_second_fit_takes_over():
    assert ends([0, 0, 1, 1, 1]) == [True, True, False, True, True]
    assert ends([0, 1, 0, 1, 2, 2, 2])[4:] == [False, True, True]


def test_where_the_first_optimizer_is_gone_another_takes_over_at_once():
    cycle = Cycle(exists=lambda index: index != 0)
    assert [cycle.ends_with(index) for index in [0, 0, 1, 1]] == [True, True, True, True]


def test_a_closer_that_stops_stepping_is_not_waited_for():
    assert ends([0, 1, 0, 1] + [0] * 8)[-3:] == [True, True, True]


def owner_with(function):
    return types.SimpleNamespace(loss=function)


def test_a_patch_is_removed_without_a_trace():
    def loss(x):
        return x + 1

    owner = owner_with(loss)
    patches = Patches()
    patches.wrap(owner, "loss", lambda original: lambda *a: original(*a) * 10)
    assert owner.loss(1) == 20
    assert owner.loss.__name__ == "loss"
    patches.remove()
    assert owner.loss is loss


def test_someone_elses_wrapper_on_top_of_ours_is_kept():
    owner = owner_with(lambda x: x)
    patches = Patches()
    patches.wrap(owner, "loss", lambda original: lambda x: original(x))
    ours = owner.loss

    def theirs(x):
        return ours(x)

    owner.loss = theirs
    patches.remove()
    assert owner.loss is theirs


def test_a_warning_from_a_wrapped_function_points_at_the_callers_line():
    def noisy():
        warnings.warn("look here", stacklevel=2)

    owner = owner_with(noisy)
    Patches().wrap(owner, "loss", lambda original: lambda: original())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        owner.loss()
    assert [w.filename for w in seen] == [__file__]


def test_a_probe_that_raises_is_reported_once_and_switched_off():
    reports = []
    guard = Guard(lambda name, error: reports.append((name, str(error))))
    calls = []

    def probe(x):
        calls.append(x)
        raise ValueError("broken")

    guarded = guard.probe("p", probe)
    assert guarded(1) is None
    assert guarded(2) is None
    assert (calls, reports) == ([1], [("p", "broken")])


def test_a_report_that_fails_does_not_reach_the_program():
    def report(name, error):
        raise OSError("stderr is closed")

    guarded = Guard(report).probe("p", lambda: 1 / 0)
    assert guarded() is None


def test_an_injected_fault_fires_at_the_third_call(monkeypatch):
    monkeypatch.setenv(INJECT, "p")
    reports = []
    guard = Guard(lambda name, error: reports.append(name))
    calls = []
    guarded = guard.probe("p", lambda: calls.append(1))
    for _ in range(5):
        guarded()
    assert (len(calls), reports) == (2, ["p"])


def test_a_follower_that_was_sent_elsewhere_follows_nothing():
    follower = pickle.loads(pickle.dumps(ModelFollower(SimpleNamespace())))
    assert follower.machine is None


PROGRAM = """
import sys, types
sys.path.insert(0, {folder!r})
from clew.hooks.entry.after_import import AfterImport
seen = []
waiter = AfterImport("slowmod", lambda: seen.append(sys.modules["slowmod"].value))
waiter.install()
assert waiter in sys.meta_path and seen == []
import slowmod
assert seen == [42], seen
assert waiter not in sys.meta_path
assert "clew" not in repr(slowmod.__loader__) + repr(slowmod.__spec__.loader)
import importlib
importlib.reload(slowmod)
assert seen == [42]
AfterImport("slowmod", lambda: seen.append("at once")).install()
assert seen == [42, "at once"]
print("ok")
"""


@pytest.mark.parametrize("kind", ["module", "package"])
def test_the_callback_runs_after_the_import_and_leaves_no_trace(tmp_path, kind):
    target = tmp_path / "slowmod.py" if kind == "module" else tmp_path / "slowmod" / "__init__.py"
    target.parent.mkdir(exist_ok=True)
    target.write_text("value = 42\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=str(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("ok\n", "")


def test_the_next_wanted_step_is_the_first_that_is_wanted():
    """Whatever was booked before: plain steps are noted up to there without asking again."""
    for seed in range(40):
        drawn = random.Random(seed)
        sampler = SamplingBudget(0.02, every_step=seed == 0)
        sampler.also = range(0) if seed % 3 else range(150, 160)
        sampler.paused = seed == 1
        for step in range(drawn.randrange(300)):
            cost = drawn.uniform(1e-5, 1e-3)
            sampler.account(step, sampler.wants(step), cost, cost + drawn.uniform(1e-4, 0.05))
        for step in range(0, 400, 7):
            wanted = sampler.next_wanted(step)
            assert wanted >= step
            assert not any(sampler.wants(between) for between in range(step, min(wanted, 3000)))
            assert wanted > 10**6 or sampler.wants(wanted)


def test_plain_steps_booked_together_leave_what_they_leave_one_by_one():
    one, many = SamplingBudget(0.02), SamplingBudget(0.02)
    for sampler in (one, many):
        for step in range(60):
            sampler.account(step, step % 3 == 0, 1e-4, 2e-3)
    for step in range(60, 100):
        one.account(step, False, 5e-5, 1e-3)
    many.account_light(40, 40 * 5e-5, 40 * 1e-3)
    assert many.spent == pytest.approx(one.spent)
    assert many.elapsed == pytest.approx(one.elapsed)
    assert many._light == pytest.approx(one._light, rel=0.5)
    assert many.next_wanted(100) == one.next_wanted(100)
