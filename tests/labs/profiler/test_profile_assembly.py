"""One way from windows, clock and samplers to a profile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clew.labs.profiler.profile_assembly import StepDurations, profile_of
from clew.labs.profiler.profile_recorder import WindowsSeen
from clew.labs.profiler.window_contents import WindowReading


def clock(reading: WindowReading) -> StepDurations:
    total = np.array([0.1, 0.2, 0.3])
    return StepDurations(np.arange(3), total, {"forward": total / 2}, np.array([8.0, 8.0, 8.0]))


class Broken(WindowsSeen):
    @property
    def stacks(self) -> None:
        raise RuntimeError("no stacks today")


def test_without_windows_there_are_the_times_of_the_clock(tmp_path: Path) -> None:
    profile = profile_of(WindowsSeen(notes=["seen"]), clock, roof_file=tmp_path / "roof.json", notes=["said"])
    assert profile.step_median == pytest.approx(0.2)
    assert [part.name for part in profile.parts if part.median] == ["forward"]
    assert profile.notes == ("said", "seen")
    assert list(tmp_path.iterdir()) == []  # nothing was measured, nothing is written


def test_a_part_that_fails_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    failures: list[str] = []

    def guarded(part) -> None:
        try:
            part()
        except RuntimeError as error:
            failures.append(str(error))

    profile = profile_of(Broken(), clock, roof_file=tmp_path / "roof.json", guarded=guarded)
    assert failures == ["no stacks today"]
    assert profile.step_median == pytest.approx(0.2)


def test_unguarded_a_failure_is_the_callers(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no stacks today"):
        profile_of(Broken(), clock, roof_file=tmp_path / "roof.json")
