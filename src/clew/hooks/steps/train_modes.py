"""Train and eval modes of models, and the lines that set them."""

from __future__ import annotations

from typing import Any

from torch import nn

from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.entry.sink import Sink
from clew.hooks.entry.user_line import user_line
from clew.hooks.steps.step_clock import StepClock
from clew.hooks.steps.step_pattern import Pattern
from clew.records.facts.step_facts import ModeFact

EVERY = 10  # the mode of a training model is recorded at least every so many steps
MOST = 10_000  # modules for which we remember who set their mode


class Modes:
    """The modes of all models of a program."""

    def __init__(self, sink: Sink, clock: StepClock, pattern: Pattern) -> None:
        self._sink = sink
        self._clock = clock
        self._pattern = pattern
        self._set: dict[int, tuple[bool, str | None, int | None]] = {}
        self._known: set[Any] = set()

    def were_set(self, module: nn.Module, training: bool) -> None:
        """The user called `.train()` or `.eval()` on this module."""
        file, line = user_line()
        if len(self._set) > MOST:
            self._set.clear()
        self._set[id(module)] = (training, file, line)

    def note(self, root: Root, module: nn.Module, trains: bool) -> None:
        """A root module runs, in training or not: record when its mode changed, and who set it."""
        training = module.training
        if root.training is not None and root.training != training:
            self._pattern.add("m", root.index)
            _, file, line = self._set.get(id(module), (training, None, None))
            data = {"root": root.name, "training": training, "file": file, "line": line}
            self._sink.event("mode", self._clock.step, data)
        root.training = training
        if not trains:
            return
        _, file, line = self._set.get(id(module), (training, None, None))
        key = (root.index, training, file, line)
        if key not in self._known:
            self._known.add(key)
            dependent = tuple((path, kind) for path, kind in root.mode_dependent[:50])
            ModeFact(root.name, training, file, line, dependent).write(self._sink, self._clock.step)

    def note_training(self, root: Root, training: bool | None, sampling: bool) -> None:
        """Record the mode of a training root: when sampled, every `EVERY` steps, and always in eval mode."""
        training = root.training if training is None else training
        if sampling or not training or self._clock.step % EVERY == 0:
            self._clock.modes[root.name] = float(bool(training))
