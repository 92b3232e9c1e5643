"""`clew.try_faster` and `clew.batch_sizes`: `clew profile --try` and `--batch-sizes` on objects that you
pass.

    print(clew.try_faster(model, loss_fn, loader, optimizer))
    print(clew.batch_sizes(model, loss_fn, loader, optimizer, sizes=[16, 32, 64, 128]))

Both work on the given objects and leave them bit-identical.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn, optim

from clew.labs.profiler.step_experiments import batch_size_sweep, faster_experiments
from clew.labs.profiler.step_experiments.step_runner import TIME_LIMIT
from clew.labs.snapshot.module_state import keep_loader_generators
from clew.labs.snapshot.subject import Subject
from clew.labs.snapshot.users_step.model_calls import as_in_training
from clew.labs.snapshot.users_step.subject_from_call import subject_of
from clew.records.errors import CannotExamine
from clew.records.tried_changes import BatchSizes, TriedChange
from clew.render.profile.tried_changes_terminal import render_attempts, render_batch_sizes
from clew.render.screen import drawn_text
from clew.session.active_session import active

DOUBLINGS = (1, 2, 4, 8, 16)  # times a quarter of the given batch, where no sizes are given


def try_faster(
    model: nn.Module,
    loss_fn: Callable[..., Tensor] | None = None,
    batch_or_loader: Any = None,
    optimizer: optim.Optimizer | None = None,
    *,
    step: Callable[[Any], Tensor] | None = None,
    time_limit: float = TIME_LIMIT,
    threads: bool = False,
) -> FasterReport:
    """Time a training step unchanged and with one change at a time; raises CannotExamine.

    The arguments are those of `clew.examine`. With `threads`, other numbers of threads are tried too:
    torch may then split its work differently, which changes the last bits.
    """
    with _subject(model, loss_fn, batch_or_loader, optimizer, step) as subject:
        found = faster_experiments.try_faster(
            subject, lambda *_: None, time_limit=time_limit, evaluation=False, threads=threads
        )
    return FasterReport(tuple(found))


def batch_sizes(
    model: nn.Module,
    loss_fn: Callable[..., Tensor] | None = None,
    batch_or_loader: Any = None,
    optimizer: optim.Optimizer | None = None,
    *,
    sizes: Sequence[int] = (),
    step: Callable[[Any], Tensor] | None = None,
    time_limit: float = TIME_LIMIT,
) -> BatchSizesReport:
    """Samples per second and memory by batch size, and the best size; raises CannotExamine."""
    wrong = [size for size in sizes if isinstance(size, bool) or not isinstance(size, int) or size < 1]
    if wrong:
        raise CannotExamine(f"a batch size is an integer of at least 1, not {wrong[0]!r}")
    with _subject(model, loss_fn, batch_or_loader, optimizer, step) as subject:
        quarter = max(subject.batches[0].size // 4, 1)
        wanted = sizes or [quarter * times for times in DOUBLINGS]
        found = batch_size_sweep.sweep(subject, wanted, lambda *_: None, time_limit=time_limit)
    return BatchSizesReport(found)


@contextlib.contextmanager
def _subject(model: Any, loss_fn: Any, data: Any, optimizer: Any, step: Any) -> Iterator[Subject]:
    """The user's step, with any session in this process paused: its hooks would be timed too."""
    session = active()
    if session is not None:
        session.pause()
    try:
        with keep_loader_generators(data):
            subject = subject_of(model, loss_fn, data, optimizer, step=step)
            with as_in_training(model):
                yield subject
    finally:
        if session is not None:
            session.resume()


@dataclass(frozen=True)
class FasterReport:
    """The tested changes; printed, it is the table of `clew profile --try`."""

    attempts: tuple[TriedChange, ...]

    @property
    def best(self) -> TriedChange | None:
        """The change that helps most, if one helps beyond the noise and computes the same results."""
        helping = [a for a in self.attempts if a.helps]
        return max(helping, key=lambda a: a.gain, default=None)

    def __getitem__(self, name: str) -> TriedChange:
        for attempt in self.attempts:
            if attempt.name == name:
                return attempt
        raise KeyError(name)

    def __str__(self) -> str:
        return drawn_text(render_attempts, self.attempts)

    def to_json(self) -> list[dict[str, Any]]:
        return [attempt.to_json() for attempt in self.attempts]


@dataclass(frozen=True)
class BatchSizesReport:
    """Throughput and memory by size; printed, it is the table of `clew profile --batch-sizes`."""

    sizes: BatchSizes

    @property
    def knee(self) -> int | None:
        """The smallest size beyond which larger ones gain almost nothing."""
        return self.sizes.knee

    def __str__(self) -> str:
        return drawn_text(render_batch_sizes, self.sizes)

    def to_json(self) -> dict[str, Any]:
        return self.sizes.to_json()
