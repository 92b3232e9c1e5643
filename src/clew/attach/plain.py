"""Plain steps, the ones between samples: noted in a few words as they happen, written in batches.

Python that runs once a step is slow: torch has pushed it out of the processor's caches by then.
So on plain steps the seams only append a tuple here; what the tuples mean is worked out for many
steps at once, in the same words as for other steps.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

from torch import Tensor

from clew.attach.frames import USER, kind_of, user_line

if TYPE_CHECKING:
    from clew.attach.watcher import Watcher

MOST_EVENTS = 96  # waiting to be written: about sixteen steps

FORWARD, BACKWARD, STEP, OTHER, DATA = range(5)


class PlainSteps:
    """Notes the events of plain steps and writes them out later."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.events: list[tuple[Any, ...]] = []
        self.note = self.events.append
        self.resting = False  # nothing but noting is done now
        self.steps = 0  # that have ended and are not written yet

    def can_note_loss(self, tensors: Any) -> bool:
        """Whether this backward is an ordinary one, of a finite number in this machine's memory."""
        if type(tensors) is not Tensor or not tensors.is_cpu or tensors.numel() != 1:
            return False
        value = tensors.item()
        self._loss = value
        return value - value == 0.0

    def note_backward(self, began: float) -> None:
        """Called from the wrapper of `torch.autograd.backward`, which `Tensor.backward` calls."""
        frame = sys._getframe(4)  # above: the guard, the wrapper, `Tensor.backward`
        if kind_of(frame.f_code.co_filename) == USER:
            where: tuple[str | None, int | None] = frame.f_code.co_filename, frame.f_lineno
        else:
            where = user_line()
        self.note((BACKWARD, self._loss, where, perf_counter() - began))

    def gradient_norm(self, optimizer: Any) -> float | None:
        """The norm of a known optimizer's gradients, if it is a finite number at hand."""
        state = self._watcher.optimizers.known(optimizer)
        norm = state.norm() if state is not None else None
        return norm if type(norm) is float and norm - norm == 0.0 else None

    def note_step(self, optimizer: Any, norm: float, began: float, ready: float) -> None:
        """An optimizer stepped: `began` is when we were asked, `ready` when it could begin."""
        watcher = self._watcher
        state = watcher.optimizers.known(optimizer)
        if state is None:
            return
        now = perf_counter()
        ends = watcher.cycle.ends_with(state.index)
        rates = [group.get("lr", 0.0) for group in optimizer.param_groups]
        self.note((STEP, state, norm, rates, ready - began, now - ready, now, ends))
        if ends:
            watcher.hold_batch(None, None)
            self.steps += 1
            if len(self.events) >= MOST_EVENTS or watcher.sampler.wants(watcher.step):
                self.write()
                watcher.begin_step()

    def write(self) -> None:
        """Work out and write what was noted."""
        if not self.events:
            return
        began = perf_counter()
        events, steps = self.events, max(self.steps, 1)
        self.events, self.steps = [], 0
        self.note = self.events.append
        states = {}
        own = self._watcher.sampler.plain_cost  # of this writing, a step's share: known from the last time
        for event in events:
            if event[0] == STEP:
                states[event[1].index] = event[1]
            self._work_out(event, own)
        for state in states.values():
            self._watcher.optimizers.after_step(state)  # from here on its gradients are looked at again
        self._watcher.sampler.plain_cost = (perf_counter() - began) / steps

    def _work_out(self, event: tuple[Any, ...], own: float) -> None:
        watcher = self._watcher
        clock, pattern = watcher.clock, watcher.pattern
        if event[0] == FORWARD:
            _, index, seconds, size = event
            pattern.add("f", index)
            clock.forward += seconds
            clock.pending_batch = size
        elif event[0] == BACKWARD:
            _, value, where, seconds = event
            pattern.add("b")
            clock.backward += seconds
            clock.batch += clock.pending_batch
            clock.pending_batch = 0
            watcher.sink.row(watcher.loss_table(where), clock.step, (value,))
        elif event[0] == STEP:
            _, state, norm, rates, asked, seconds, now, ends = event
            pattern.add("s", state.index)
            clock.optimizer += seconds
            watcher.optimizers.write(state, rates, clock.step, norm)
            if ends:
                watcher.end_plain_step(now, asked + own)
        elif event[0] == DATA:
            pattern.add("d")
            clock.data += event[1]
        else:
            pattern.add(event[1])
