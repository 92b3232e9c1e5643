"""Ways of profiling a whole run: `clew profile` outside its windows, and the alternatives."""

from __future__ import annotations

import cProfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from benchmarks.contenders import Contender, raw
from benchmarks.workloads import Workload
from clew.session.activities.profile_recording import ProfileRecording
from clew.session.run_options import ProfileOptions, RunOptions
from clew.session.session import Session

WARM_UP = 60  # steps: Clew looks at the first 32 one by one, on credit, and opens its first windows


@contextmanager
def profiled(work: Workload, folder: Path, *, steps: int | None = None) -> Iterator[Session]:
    """A session as `clew profile` creates it."""
    options = RunOptions("benchmark", root=folder, quiet=True, profile=ProfileOptions(), steps=steps)
    session = Session(options)
    session.start()
    try:
        yield session
    finally:
        session.close()


@contextmanager
def clew_profile(work: Workload) -> Iterator[Contender]:
    """Outside the windows: where one would open, steps run until it is closed."""
    with tempfile.TemporaryDirectory() as folder, profiled(work, Path(folder)) as session:
        attached = True

        def on() -> None:
            nonlocal attached
            if not attached:
                session.resume()
                attached = True
            for _ in range(500):
                if not near_a_window(session):
                    break
                work.step()

        def off() -> None:
            nonlocal attached
            if attached:
                session.pause()
                attached = False

        for _ in range(WARM_UP):
            work.step()
        yield Contender(on, off, work.step)
        on()


def near_a_window(session: Session) -> bool:
    """Whether a window is open, or about to open."""
    found = [part._recorder for part in session.activities if isinstance(part, ProfileRecording)]
    return any(one is not None and one.windows.is_near(session.step + 20) for one in found)


@contextmanager
def torch_profiler(work: Workload) -> Iterator[Contender]:
    """torch.profiler with stacks, shapes and memory, all the time."""
    running: list[Any] = []

    def on() -> None:
        running.append(torch.profiler.profile(with_stack=True, record_shapes=True, profile_memory=True))
        running[-1].start()

    def off() -> None:
        while running:
            running.pop().stop()

    try:
        yield Contender(on, off, work.step)
    finally:
        off()


@contextmanager
def c_profile(work: Workload) -> Iterator[Contender]:
    """cProfile, all the time."""
    profile = cProfile.Profile()
    try:
        yield Contender(profile.enable, profile.disable, work.step)
    finally:
        profile.disable()


COLUMNS: dict[str, Callable[[Workload], Any]] = {
    "raw/raw": raw,
    "clew profile": clew_profile,
    "torch.profiler with stacks": torch_profiler,
    "cProfile": c_profile,
}
