"""Which steps are sampled: dense at first, later as often as the budget allows."""

import random

import pytest

from clew.hooks.steps.sampling_budget import AIM, CREDIT, DENSE_STEPS, SPARSE_EVERY, SamplingBudget


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


def test_the_next_wanted_step_is_the_first_that_is_wanted():
    """Whatever was booked before: plain steps are noted up to there without asking again."""
    for seed in range(40):
        drawn = random.Random(seed)
        sampler = SamplingBudget(0.02, every_step=seed == 0)
        if seed % 3 == 0:
            sampler.always(range(150, 160))
            sampler.always(range(200, 203))
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


def test_steps_that_several_asked_for_are_all_sampled():
    sampler = SamplingBudget(0.02)
    sampler.always(range(2))
    sampler.always(range(300, 302))
    taken = drive(sampler, 310, cost=1.0, step_time=1e-3)
    assert {0, 1, 300, 301} <= set(taken)
    assert not set(taken) & set(range(100, 300))
