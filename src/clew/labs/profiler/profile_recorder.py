"""Records a profile: the windows of every kind for one program, and what they have recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import nn

from clew.hooks.collect_layers.trained_models import ModelBook, Root
from clew.hooks.collect_loop.optimizers import OptimizerBook
from clew.labs.profiler.call_profile import CallProfile
from clew.labs.profiler.memory.memory_window import MemoryWindow
from clew.labs.profiler.memory.tensor_memory import TensorMemory
from clew.labs.profiler.profile_windows import (
    CALLS,
    DETAIL,
    MEMORY,
    STACKS,
    WATCH,
    Schedule,
    Skipped,
    Window,
    Windows,
)
from clew.labs.profiler.slow_patterns import PatternObserver
from clew.labs.profiler.stack_sampler import Sampler, Samples
from clew.labs.profiler.torch_trace.host_syncs import SyncWatch
from clew.labs.profiler.torch_trace.kineto_window import KinetoWindow, ProgramProfiler, TraceDetail


@dataclass
class WindowsSeen:
    """What all windows have recorded so far; early ones count only if there are no others."""

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


class ProfileRecorder:
    """Profiles one program: opens windows as scheduled, from `step_begins` to `stop`."""

    def __init__(
        self,
        schedule: Schedule,
        failed: Callable[[str, Exception], None],
        models: ModelBook,
        find: Callable[[nn.Module], Root | None],
        optimizers: OptimizerBook | None = None,
        observer: PatternObserver | None = None,
    ) -> None:
        self.models = models
        self.find = find
        self.optimizers = optimizers
        self.observer = observer
        self.program = ProgramProfiler()
        self.windows = Windows(schedule, lambda kind, early: _KINDS[kind](self, early), failed)
        self.seen = WindowsSeen(notes=self.windows.notes)
        self.program.install()

    def stop(self) -> None:
        """Close what is open; torch is left as it was."""
        try:
            self.windows.finish()
        finally:
            self.program.remove()


class _Window:
    """A window whose end comes from the schedule."""

    def __init__(self, recorder: ProfileRecorder, early: bool) -> None:
        self.recorder = recorder
        self.seen = recorder.seen
        self.early = early

    @property
    def over(self) -> bool:
        return False

    def mark(self, step: int) -> None:
        """A step begins: nothing to do for most kinds."""


class _DetailWindow(_Window):
    """Torch's profiler: every operation."""

    def __init__(self, recorder: ProfileRecorder, early: bool) -> None:
        super().__init__(recorder, early)
        self._window = KinetoWindow(recorder.models, recorder.find, recorder.program)

    @property
    def over(self) -> bool:
        return self._window.closed

    def start(self, step: int) -> None:
        self._window.start(step)

    def mark(self, step: int) -> None:
        self._window.mark(step)

    def stop(self, whole: bool) -> None:
        detail = self._window.stop()
        self.seen.note(self._window.note)
        if detail is not None:
            (self.seen.early_details if self.early else self.seen.details).append(detail)


class _StackWindow(_Window):
    """Python stacks."""

    def __init__(self, recorder: ProfileRecorder, early: bool) -> None:
        super().__init__(recorder, early)
        self._sampler = Sampler()

    def start(self, step: int) -> None:
        if self.recorder.models.compile_used:  # dynamo would compile the sampler
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


class _WatchWindow(_Window):
    """Host syncs; how the program loads data and builds its tensors."""

    def start(self, step: int) -> None:
        self.seen.syncs.start(compiled=self.recorder.models.compile_used)
        if self.recorder.observer is not None:
            self.recorder.observer.start()

    def mark(self, step: int) -> None:
        self.seen.syncs.mark(step)

    def stop(self, whole: bool) -> None:
        self.seen.syncs.stop()
        if self.recorder.observer is not None:
            self.recorder.observer.stop()


class _MemoryWindow(_Window):
    """The memory of tensors in one step."""

    _window: MemoryWindow

    def start(self, step: int) -> None:
        if self.recorder.optimizers is None or self.recorder.models.compile_used:
            raise Skipped("")
        self._window = MemoryWindow(
            self.recorder.models, self.recorder.optimizers, self.recorder.find, self.recorder.program
        )
        self._window.start()

    def stop(self, whole: bool) -> None:
        found = self._window.stop()
        self.seen.note(self._window.note)
        if found is not None and whole:
            self.seen.memory.append(found)


class _CallWindow(_Window):
    """Every Python call: `--cprofile`."""

    def start(self, step: int) -> None:
        if self.recorder.models.compile_used:
            raise Skipped("Python's calls were not counted: the program uses torch.compile")
        self.seen.calls.start()
        self.seen.note(self.seen.calls.note)

    def stop(self, whole: bool) -> None:
        self.seen.calls.stop()
        self.seen.note(self.seen.calls.note)


_KINDS: dict[str, Callable[[ProfileRecorder, bool], Window]] = {
    DETAIL: _DetailWindow,
    STACKS: _StackWindow,
    WATCH: _WatchWindow,
    MEMORY: _MemoryWindow,
    CALLS: _CallWindow,
}
