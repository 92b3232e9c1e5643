"""When a run in progress is checked."""

import itertools

from clew.session.live_judge import FIRST, Pace


def looks(pace: Pace, steps: int, seconds: float, cost: float) -> list[tuple[int, float]]:
    """Steps and times of the looks at a run whose steps take so long."""
    found = []
    for step in range(1, steps + 1):
        now = step * seconds
        if pace.is_due(step, now):
            pace.judged(step, now, cost)
            found.append((step, now))
    return found


def test_a_short_run_is_looked_at_by_its_steps_whatever_the_time() -> None:
    quick = [step for step, _ in looks(Pace(), 300, 1e-3, 0.01)]
    assert quick[:6] == [8, 12, 18, 27, 40, 60]
    assert quick[-1] > 200
    slow = [step for step, _ in looks(Pace(), 300, 1.0, 0.01)]
    assert all(after <= 1.5 * before for before, after in itertools.pairwise(slow))


def test_nothing_is_looked_at_before_there_is_anything_to_say() -> None:
    assert not Pace().is_due(FIRST - 1, 1e9)


def test_early_looks_cost_no_more_than_their_credit() -> None:
    for cost in (0.002, 0.01, 0.1):
        spent = len(looks(Pace(share=1e-12), 10**6, 1e-3, cost)) * cost
        assert spent <= Pace.credit + 2 * cost


def test_later_looks_keep_to_their_share_of_a_processor() -> None:
    pace = Pace(credit=0.0)
    found = looks(pace, 10**6, 1e-3, 0.01)
    assert 0.75 * pace.share * 1000 < len(found) * 0.01 <= pace.share * 1000 + 0.02


def test_a_costly_first_look_does_not_keep_the_next_ones_away() -> None:
    pace = Pace()
    pace.judged(8, 1.0, 0.3)
    assert pace.is_due(12, 1.001)


def test_after_its_first_steps_a_quick_run_is_looked_at_for_its_share_alone() -> None:
    pace = Pace()
    young = looks(pace, 2_000, 1e-3, 0.01)
    later = [step for step in range(2_001, 62_001) if due_and_looked(pace, step)]
    assert len(young) > 12
    assert 8 < len(later) <= pace.share * 60 / 0.01 + 1


def due_and_looked(pace: Pace, step: int) -> bool:
    due = pace.is_due(step, step * 1e-3)
    if due:
        pace.judged(step, step * 1e-3, 0.01)
    return due
