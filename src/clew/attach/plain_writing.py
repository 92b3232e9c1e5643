"""What the notes of plain steps mean: worked out for many steps at once, in the words of other steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.attach.steps import TOTAL

if TYPE_CHECKING:
    from clew.attach.optimizers import OptimizerState
    from clew.attach.watcher import Watcher

# The kinds of notes, and what follows in each:
FORWARD = 0  # number of the model, seconds, size of the batch
BACKWARD = 1  # loss, line, seconds
STEP = 2  # optimizer, gradient norm, rates, seconds that asking took, and the update; now; ends a step
OTHER = 3  # a letter of the pattern
DATA = 4  # seconds that a batch was waited for


def work_out(watcher: Watcher, events: list[tuple[Any, ...]]) -> list[OptimizerState]:
    """Write what was noted; gives the optimizers that stepped. A loop with few calls: it sees every step."""
    clock, pattern, token = watcher.clock, watcher.pattern, watcher.pattern.token
    rows: dict[int, tuple[list[int], list[Any]]] = {}  # of each table: steps, and what goes into them
    states: dict[int, OptimizerState] = {}
    tokens: list[str] = []
    ended: list[tuple[float, ...]] = []  # rows of the steps that are over
    first = clock.step
    spent = memory = 0.0
    for event in events:
        kind = event[0]
        if kind == FORWARD:
            tokens.append(token("f", event[1]))
            root = watcher.models.roots[event[1]]
            watcher.modes.note_training(root, root.training, watcher.sampling)
            clock.forward += event[2]
            clock.pending_batch = event[3]
        elif kind == BACKWARD:
            tokens.append("b")
            clock.backward += event[3]
            clock.batch += clock.pending_batch
            clock.pending_batch = 0
            table = watcher.loss_table(event[2])
            steps, values = rows.get(table) or rows.setdefault(table, ([], []))
            steps.append(clock.step)
            values.append((event[1],))
        elif kind == STEP:
            _, state, norm, rates, own, seconds, now, ends = event
            states[state.index] = state
            tokens.append(token("s", state.index))
            clock.optimizer += seconds
            table, row = watcher.optimizers.row(state, rates, norm)
            steps, values = rows.get(table) or rows.setdefault(table, ([], []))
            steps.append(clock.step)
            values.append(row)
            if ends:
                pattern.extend(tokens)
                tokens.clear()
                own += watcher.sampler.plain_cost  # of this writing, a step's share: known from the last time
                if not ended:
                    own += clock.newly_booked()
                    memory = clock.memory.read(now)
                if not ended or watcher.counts_at(clock.step):
                    watcher.end_sections(clock.step)
                ended.append(clock.end(now, own, memory))
                spent += own
        elif kind == DATA:
            tokens.append("d")
            clock.data += event[1]
        else:
            tokens.append(event[1])
    pattern.extend(tokens)
    for table, (steps, values) in rows.items():
        watcher.sink.rows(table, steps, values)
    if ended:
        watcher.sink.rows(clock.table, range(first, clock.step), ended)
        watcher.sampler.account_plain(len(ended), spent, sum(row[TOTAL] for row in ended))
        clock.late.resolve()  # of a step before these, if anything
    return list(states.values())
