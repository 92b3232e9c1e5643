"""Turns the notes of light steps into rows, many steps at once, with the same signals as sampled steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clew.hooks.steps.forward_calls import MODE_EVERY
from clew.hooks.steps.native_steps import events_of
from clew.hooks.steps.step_clock import OF_CLOCK, StepColumn
from clew.records.site import Line

if TYPE_CHECKING:
    from clew.hooks.collect_layers.trained_models import Root
    from clew.hooks.collect_loop.optimizers import OptimizerState
    from clew.hooks.entry.sink import Array
    from clew.hooks.steps.watcher import Watcher

# The kinds of notes, and the fields of each:
FORWARD = 0  # number of the model, seconds, batch size
BACKWARD = 1  # loss, line, seconds
STEP = 2  # optimizer, gradient norm, rates, seconds for reading them, and the update; now; ends a step
OTHER = 3  # a letter of the pattern
DATA = 4  # seconds spent waiting for a batch


class _Rows:
    """Numbers of one table, row after row."""

    def __init__(self, table: int, columns: int) -> None:
        self.table, self.columns = table, columns
        self.steps: list[int] = []
        self.values: list[float] = []


def work_out(watcher: Watcher, events: list[tuple[Any, ...]]) -> list[OptimizerState]:
    """Write what was noted; returns the optimizers that stepped. The loop sees every step: keep calls few."""
    clock, pattern, token = watcher.clock, watcher.pattern, watcher.pattern.token
    roots, note_training = watcher.models.roots, watcher.modes.note_training
    losses: dict[Any, _Rows] = {}  # by line
    updates: dict[int, tuple[OptimizerState, _Rows]] = {}  # by number of the optimizer
    tokens: list[str] = []
    raw: list[float] = []  # of the finished steps
    first = clock.step
    counting = watcher.next_inventory(first + 1)  # everything is counted at the first step anyway
    share = watcher.sampler.light_cost  # a step's share of this write, estimated from the last one
    spent = memory = 0.0
    for event in events:
        kind = event[0]
        if kind == FORWARD:
            _, index, seconds, clock.pending_batch = event
            tokens.append(token("f", index))
            clock.forward += seconds
            note_training(roots[index], None, False)
        elif kind == BACKWARD:
            _, loss, line, seconds = event
            tokens.append("b")
            clock.backward += seconds
            clock.batch += clock.pending_batch
            clock.pending_batch = 0
            rows = losses.get(line) or losses.setdefault(line, _Rows(watcher.loss_table(line), 1))
            rows.steps.append(clock.step)
            rows.values.append(loss)
        elif kind == STEP:
            _, state, norm, rates, own, seconds, now, ends = event
            tokens.append(token("s", state.index))
            clock.optimizer += seconds
            if state.index not in updates:
                table, groups = watcher.optimizers.table_of(state)
                updates[state.index] = (state, _Rows(table, 1 + groups))
            rows = updates[state.index][1]
            rows.steps.append(clock.step)
            rows.values.append(norm)
            rows.values += map(float, rates[: rows.columns - 1])
            if ends:
                own += share
                if not raw:
                    own += clock.newly_booked()
                    memory = clock.memory.read(now)
                    watcher.end_sections(first)
                elif clock.step == counting:
                    watcher.end_sections(counting)
                    counting = watcher.next_inventory(counting + 1)
                clock.end(now, own, pattern.close(tokens), raw)
                tokens.clear()
                spent += own
        elif kind == DATA:
            tokens.append("d")
            clock.data += event[1]
        else:
            tokens.append(event[1])
    pattern.extend(tokens)
    for rows in (*losses.values(), *(rows for _, rows in updates.values())):
        values = np.array(rows.values, "<f8").reshape(-1, rows.columns)
        watcher.sink.rows(rows.table, np.array(rows.steps), values)
    if raw:
        steps = clock.step - first
        watcher.sampler.account_light(steps, spent, clock.write(first, raw, memory))
        clock.late.resolve()  # values of an earlier step, if any
    return [state for state, _ in updates.values()]


def write_rows(watcher: Watcher, root: Root, state: OptimizerState, line: Line, rows: Array) -> None:
    """Write the rows of steps that the library noted: see `StepColumn`."""
    clock, sink = watcher.clock, watcher.sink
    first, codes = clock.step, rows[:, StepColumn.EVENTS].copy()
    steps = np.arange(first, first + len(rows))
    memory = clock.memory.read(rows[0, StepColumn.NOW])
    watcher.end_sections(first)
    rows[:, StepColumn.OWN] += watcher.sampler.light_cost  # a share of this write, as of the last
    rows[0, StepColumn.OWN] += clock.newly_booked()
    rows[0, StepColumn.WAITING : StepColumn.SIZE + 1] += clock.begun()
    numbered = {"f": root.index, "s": state.index}

    def pattern(code: float) -> int:
        tokens = [watcher.pattern.token(event, numbered.get(event, 0)) for event in events_of(code)]
        return watcher.pattern.close(tokens)

    rows[0, StepColumn.EVENTS] = pattern(codes[0])  # together with what came before these steps
    for code in set(codes[1:]):
        rows[1:, StepColumn.EVENTS][codes[1:] == code] = pattern(code)
    sink.rows(watcher.loss_table(line), steps, rows[:, [StepColumn.LOSS]])
    sink.rows(watcher.optimizers.table_of(state)[0], steps, rows[:, [StepColumn.NORM, StepColumn.RATE]])
    clock.note_modes(root.name, steps[steps % MODE_EVERY == 0])
    seconds = clock.write(first, rows[:, :OF_CLOCK], memory)
    clock.step += len(rows)
    watcher.sampler.account_light(len(rows), float(rows[:, StepColumn.OWN].sum()), seconds)
    clock.late.resolve()  # values of an earlier step, if any
