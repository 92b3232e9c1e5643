"""The kinds of windows that a run is profiled with, and what each has recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import nn

from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.collect_loop.optimizers import OptimizerBook
from clew.labs.profiler.habits.habit_observer import Observer
from clew.labs.profiler.memory.tensor_memory import MemoryWindow, TensorMemory
from clew.labs.profiler.profile_windows import Skipped, Window
from clew.labs.profiler.python.call_profile import CallProfile
from clew.labs.profiler.python.stack_sampler import Sampler, Samples
from clew.labs.profiler.torch_trace.host_syncs import SyncWatch
from clew.labs.profiler.torch_trace.kineto_window import CannotOpen, Courtesy, KinetoWindow, TraceDetail
from clew.labs.profiler.window_schedule import CALLS, DETAIL, MEMORY, STACKS, WATCH


@dataclass
class WindowsSeen:
    """What all windows have recorded so far; early ones count only where there are no others."""

    details: list[TraceDetail] = field(default_factory=list)
    early_details: list[TraceDetail] = field(default_factory=list)
    samples: list[Samples] = field(default_factory=list)
    early_samples: list[Samples] = field(default_factory=list)
    memory: list[TensorMemory] = field(default_factory=list)
    syncs: SyncWatch = field(default_factory=SyncWatch)
    calls: CallProfile = field(default_factory=CallProfile)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str | None) -> None:
        if text:
            self.notes.append(text)

    @property
    def in_detail(self) -> list[TraceDetail]:
        return self.details or self.early_details

    @property
    def stacks(self) -> Samples | None:
        parts = self.samples or self.early_samples
        return Samples.joined(parts) if parts else None


@dataclass
class Lenses:
    """Makes windows of every kind for one program."""

    models: ModelBook
    optimizers: OptimizerBook | None
    find: Callable[[nn.Module], Root | None]
    observer: Observer | None = None
    courtesy: Courtesy = field(default_factory=Courtesy)
    seen: WindowsSeen = field(default_factory=WindowsSeen)

    def makers(self) -> dict[str, Callable[[bool], Window]]:
        """By the schedule's word for it."""
        return {
            DETAIL: lambda early: _DetailWindow(self, early),
            STACKS: lambda early: _StackWindow(self, early),
            WATCH: lambda early: _WatchWindow(self, early),
            MEMORY: lambda early: _MemoryWindow(self, early),
            CALLS: lambda early: _CallWindow(self, early),
        }


class _Base:
    """A window whose end comes from the schedule."""

    def __init__(self, lenses: Lenses, early: bool) -> None:
        self.lenses = lenses
        self.seen = lenses.seen
        self.early = early

    @property
    def over(self) -> bool:
        return False

    def mark(self, step: int) -> None:
        """A step begins: nothing to do for most."""


class _DetailWindow(_Base):
    """Torch's profiler: every operation."""

    def __init__(self, lenses: Lenses, early: bool) -> None:
        super().__init__(lenses, early)
        self._window = KinetoWindow(lenses.models, lenses.find, lenses.courtesy)

    @property
    def over(self) -> bool:
        return self._window.closed

    def start(self, step: int) -> None:
        try:
            self._window.start(step)
        except CannotOpen as error:
            raise Skipped(str(error)) from error

    def mark(self, step: int) -> None:
        self._window.mark(step)

    def stop(self, whole: bool) -> None:
        detail = self._window.stop()
        self.seen.note(self._window.note)
        if detail is not None:
            (self.seen.early_details if self.early else self.seen.details).append(detail)


class _StackWindow(_Base):
    """Python's stacks."""

    def __init__(self, lenses: Lenses, early: bool) -> None:
        super().__init__(lenses, early)
        self._sampler = Sampler()

    def start(self, step: int) -> None:
        if self.lenses.models.compile_used:  # dynamo would compile the sampler
            raise Skipped("Python was not sampled: the program uses torch.compile")
        self._sampler.start()
        if self._sampler.note is not None:
            raise Skipped(self._sampler.note)
        self.mark(step)

    def mark(self, step: int) -> None:
        self._sampler.mark(step)

    def stop(self, whole: bool) -> None:
        samples = self._sampler.stop()
        self.seen.note(self._sampler.note)
        if samples is not None:
            (self.seen.early_samples if self.early else self.seen.samples).append(samples)


class _WatchWindow(_Base):
    """Where the host waits for numbers; how the program loads and builds its tensors."""

    def start(self, step: int) -> None:
        if not self.lenses.models.compile_used:  # dynamo would compile anew
            self.seen.syncs.start()
        if self.lenses.observer is not None:
            self.lenses.observer.start()

    def mark(self, step: int) -> None:
        self.seen.syncs.mark(step)

    def stop(self, whole: bool) -> None:
        self.seen.syncs.stop()
        if self.lenses.observer is not None:
            self.lenses.observer.stop()


class _MemoryWindow(_Base):
    """The memory of tensors in one step."""

    def __init__(self, lenses: Lenses, early: bool) -> None:
        super().__init__(lenses, early)
        self._window: MemoryWindow | None = None
        self._marks = 0

    @property
    def over(self) -> bool:
        return self._marks > 0

    def start(self, step: int) -> None:
        if self.lenses.optimizers is None or self.lenses.models.compile_used:
            raise Skipped("")
        self._window = MemoryWindow(
            self.lenses.models, self.lenses.optimizers, self.lenses.find, self.lenses.courtesy
        )
        self._window.start(step)

    def mark(self, step: int) -> None:
        self._marks += 1

    def stop(self, whole: bool) -> None:
        assert self._window is not None
        found = self._window.stop()
        self.seen.note(self._window.note)
        if found is not None and whole:
            self.seen.memory.append(found)


class _CallWindow(_Base):
    """Every call of Python's: `--cprofile`."""

    def start(self, step: int) -> None:
        if self.lenses.models.compile_used:
            raise Skipped("Python's calls were not counted: the program uses torch.compile")
        self.seen.calls.start()
        self.seen.note(self.seen.calls.note)

    def stop(self, whole: bool) -> None:
        self.seen.calls.stop()
        self.seen.note(self.seen.calls.note)
