"""Python stacks as a `.prof` file, for pstats and snakeviz."""

from __future__ import annotations

import marshal
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from clew.records.step_costs import FlameFrame, Profile
from clew.render.number_text import own
from clew.render.profile.recorded_profile import trace_file

Function = tuple[str, int, str]  # file, line, name: how pstats knows a function


@dataclass
class _Cost:
    """Of a function, or of a function as called by another: what pstats keeps of each."""

    calls: int = 0
    outermost: int = 0  # calls that are not inside another call of the same function
    own: float = 0.0
    total: float = 0.0

    def add(self, frame: FlameFrame, *, inside_itself: bool, times: float) -> None:
        self.calls += 1
        self.own += own(frame) * times
        if not inside_itself:
            self.outermost += 1
            self.total += frame.value * times

    def row(self) -> tuple[int, int, float, float]:
        return self.outermost, self.calls, self.own, self.total


@dataclass
class _Known:
    cost: _Cost = field(default_factory=_Cost)
    callers: dict[Function, _Cost] = field(default_factory=dict)


def write_pstats(profile: Profile, run: Path, path: Path) -> bool:
    """What cProfile itself has written if it ran; else the sampled stacks in the same form."""
    traced = trace_file(run, profile, "cprofile")
    if traced is not None:
        shutil.copyfile(traced, path)
        return True
    if profile.python is None:
        return False
    path.write_bytes(marshal.dumps(stats_of(profile.python, max(profile.detailed, 1))))
    return True


def stats_of(root: FlameFrame, steps: int = 1) -> dict[Function, tuple[object, ...]]:
    """The dictionary that `pstats.Stats` loads.

    A sampler sees no calls: their number is that of the places in the tree. Times are those of all
    `steps`: pstats prints three digits of a second, too few for one step.
    """
    known: dict[Function, _Known] = {}
    waiting: list[tuple[FlameFrame, tuple[Function, ...]]] = [(root, ())]
    while waiting:
        frame, above = waiting.pop()
        name = (frame.file or "~", frame.line or 0, frame.name)
        entry = known.setdefault(name, _Known())
        inside_itself = name in above
        entry.cost.add(frame, inside_itself=inside_itself, times=steps)
        if above:
            by = entry.callers.setdefault(above[-1], _Cost())
            by.add(frame, inside_itself=inside_itself, times=steps)
        waiting += [(child, (*above, name)) for child in frame.children]
    return {
        name: (*entry.cost.row(), {caller: cost.row() for caller, cost in entry.callers.items()})
        for name, entry in known.items()
    }
