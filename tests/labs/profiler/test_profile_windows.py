"""When windows open, how long they are, and what happens to them."""

from __future__ import annotations

import pytest

from clew.labs.profiler.profile_windows import (
    DETAIL,
    MEMORY,
    STACKS,
    UNRECORDED,
    WATCH,
    Schedule,
    Skipped,
    Windows,
)


class Fake:
    """A window that notes what it is told."""

    def __init__(self, kind: str, said: list[tuple[str, str, object]], fails: str = "") -> None:
        self.kind, self.said, self.fails, self.over = kind, said, fails, False

    def _say(self, what: str, value: object) -> None:
        self.said.append((self.kind, what, value))
        if self.fails == what:
            raise RuntimeError("broken")
        if self.fails == f"skip {what}":
            raise Skipped("not now")

    def start(self, step: int) -> None:
        self._say("start", step)

    def mark(self, step: int) -> None:
        self._say("mark", step)

    def stop(self, whole: bool) -> None:
        self._say("stop", whole)


def run(schedule: Schedule, steps: int, fails: dict[str, str] | None = None):  # type: ignore[no-untyped-def]
    said: list[tuple[str, str, object]] = []
    failed: list[str] = []
    broken = fails or {}
    windows = Windows(
        schedule,
        lambda kind, _early: Fake(kind, said, broken.get(kind, "")),
        lambda kind, _error: failed.append(kind),
    )
    for step in range(1, steps + 1):
        if step >= windows.due:
            windows.step_begins(step)
    windows.finish()
    return windows, said, failed


def spans(said: list[tuple[str, str, object]], kind: str) -> list[tuple[int, int]]:
    """First step and number of steps of each window of a kind."""
    found: list[list[int]] = []
    for one, what, value in said:
        if one == kind and what == "start":
            found.append([int(str(value)), 0])
        elif one == kind and what == "mark":
            found[-1][1] += 1
    return [(first, number) for first, number in found]


def test_a_run_of_unknown_length_is_looked_at_at_growing_distances() -> None:
    _, said, _ = run(Schedule(3, 8, (DETAIL,)), 1000)
    assert spans(said, DETAIL) == [(1, 1), (5, 8), (40, 8), (320, 8)]


def test_a_run_of_known_length_is_looked_at_all_over() -> None:
    _, said, _ = run(Schedule(3, 8, (DETAIL,), known=300), 300)
    assert spans(said, DETAIL)[1:] == [(30, 8), (120, 8), (210, 8)]


@pytest.mark.parametrize("steps", [3, 4, 6, 10])
def test_a_short_run_is_looked_at_too(steps: int) -> None:
    _, said, _ = run(Schedule(3, 8), steps)
    assert sum(number for _, number in spans(said, DETAIL)) >= 1
    assert said[-1][1] in ("mark", "stop")


def test_at_most_one_window_is_open_and_all_are_closed() -> None:
    _, said, _ = run(Schedule(3, 4), 700)
    open_ = 0
    for _, what, _ in said:
        open_ += {"start": 1, "stop": -1}.get(what, 0)
        assert open_ in (0, 1)
    assert open_ == 0


def test_a_step_passes_between_two_windows_of_torchs_profiler() -> None:
    """A range that is entered under one and left under the other writes into memory that is free."""
    _, said, _ = run(Schedule(2, 3, (DETAIL, MEMORY)), 200)
    ended = {int(str(value)) for kind, what, value in said if what == "mark" and kind in (DETAIL, MEMORY)}
    begun = {int(str(value)) for _, what, value in said if what == "start"}
    assert begun
    assert not ended & begun


def test_long_steps_make_short_windows_and_short_ones_long_samples() -> None:
    schedule = Schedule(3, 8)
    assert schedule.length(DETAIL, 0.5) == 4
    assert schedule.length(DETAIL, 30.0) == 1
    assert schedule.length(DETAIL, 0.001) == 8
    assert schedule.length(STACKS, 0.01) == 100
    assert schedule.length(STACKS, 1e-6) == 400
    assert schedule.length(MEMORY, 0.001) == 1


def test_a_kind_of_window_that_fails_takes_no_other_along() -> None:
    for moment in ("start", "mark", "stop"):
        _, said, failed = run(Schedule(2, 3, (DETAIL, WATCH)), 200, {DETAIL: moment})
        assert failed == [DETAIL]
        assert len(spans(said, DETAIL)) == 1
        assert len(spans(said, WATCH)) == 3


def test_a_window_that_is_skipped_is_noted_and_the_next_is_tried() -> None:
    windows, said, failed = run(Schedule(2, 3, (DETAIL, WATCH)), 200, {DETAIL: "skip start"})
    assert windows.notes == ["not now"] * 3
    assert failed == []
    assert len(spans(said, WATCH)) == 3


def test_steps_in_windows_are_known() -> None:
    windows, said, _ = run(Schedule(1, 3, (DETAIL,)), 30)
    assert windows.profiled == {1, 2, 5, 6, 7, 8}
    assert said


def test_after_a_window_in_detail_steps_are_left_alone_to_be_timed() -> None:
    windows, said, _ = run(Schedule(3, 8), 90)
    first, number = spans(said, DETAIL)[1]
    ended = first + number
    assert not set(range(ended + 1, ended + UNRECORDED)) & windows.profiled
    assert spans(said, STACKS)[1][0] == ended + UNRECORDED


def test_steps_that_a_window_makes_slower_are_told_apart() -> None:
    windows, said, _ = run(Schedule(3, 8), 90)
    for kind in (DETAIL, MEMORY):
        assert {first for first, _ in spans(said, kind)} <= windows.slowed
    assert spans(said, STACKS)[1][0] in windows.profiled - windows.slowed
