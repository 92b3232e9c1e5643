"""The seams of optimizers: steps, zeroing, schedulers, clipping, scaling."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import perf_counter
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.compiler import is_compiling
from torch.optim import Optimizer, lr_scheduler
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from clew.hooks.collect_loop.optimizers import OptimizerState
from clew.hooks.entry.probes import Probes
from clew.hooks.entry.user_line import user_line
from clew.hooks.steps.light_rows import STEP
from clew.records import signals
from clew.records.signal_types import names
from clew.records.site import Site

CLIP_SIGNALS = names(signals.CLIP_NORM, signals.CLIP_LIMIT)
MOST_BETWEEN = 12  # frames from a step to the one that it calls: decorators, and a function or two


class _Update(NamedTuple):
    """A step of an optimizer that is running; one may call another, or itself."""

    optimizer: int  # its identity
    inner: bool = False  # called by its own step
    noted: OptimizerState | None = None  # it is a plain one,
    norm: float = 0.0  # of these gradients
    asked: float = 0.0  # when we were,
    began: float = 0.0  # and when it was


def watch_optimizers(probes: Probes) -> None:
    watcher, get_ident = probes.watcher, threading.get_ident
    before = probes.probe("step", watcher.before_step)
    after = probes.probe("step", watcher.after_step)
    plain = watcher.plain
    cycle, states, ended = watcher.cycle, watcher.optimizers.by_id, plain.step_ended
    note_plain = probes.plain(plain.note)
    usually, updated = probes.plain(plain.usual.update), plain.usual.updated
    round_off = probes.plain_inside(plain.round_off)
    running: list[_Update] = []

    def taken_over() -> None:
        """A usual step turned out not to be one in its middle."""
        if plain.updating is not None:
            (state, found), plain.updating = plain.updating, None
            identity = id(state.optimizer())
            running.append(_Update(identity, False, state, found.norm, found.asked, found.began))

    def entered(optimizer: Optimizer, hooked: FrameType) -> bool:
        """Whether this is the step of one that is at it already; what has raised is forgotten."""
        identity = id(optimizer)
        if plain.usual.is_updating or any(update.optimizer == identity for update in running):
            if calls_itself(optimizer, hooked):
                running.append(_Update(identity, inner=True))
                return True
            running[:] = [update for update in running if update.optimizer != identity]
        plain.updating = None
        return False

    def left(optimizer: Optimizer) -> _Update:
        """The innermost step of this one; those inside it have raised."""
        while running:
            update = running.pop()
            if update.optimizer == id(optimizer):
                return update
        return _Update(id(optimizer), began=perf_counter())

    def pre(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        try:
            if usually(optimizer, args, kwargs):
                return
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
            probes.plain_failed(error)
        if get_ident() != watcher.thread or entered(optimizer, sys._getframe(1)):
            return
        asked, norm, noted = perf_counter(), 0.0, None
        if plain.resting and len(args) == 1 and not kwargs:
            state = states.get(id(optimizer))
            try:
                plain.settle()
                taken_over()
                if (
                    state is not None
                    and state.optimizer() is optimizer
                    and state.site is not None  # it has stepped before,
                    and state.groups == len(optimizer.param_groups)  # and has not changed since
                ):
                    at_once = state.norm.at_once
                    found: Any = at_once() if at_once is not None else -1.0
                    if not found >= 0.0:
                        found = state.norm()
                    if type(found) is float and found - found == 0.0:
                        noted, norm = state, found
            except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                probes.plain_failed(error)
        if noted is None:
            before(optimizer, args, kwargs)
            taken_over()
        # What a closure adds to the other parts of the step is not the optimizer's.
        began = perf_counter() if noted is not None else perf_counter() - watcher.clock.others()
        running.append(_Update(id(optimizer), False, noted, norm, asked, began))

    def post(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        if not (running and running[-1].inner):
            due = updated(optimizer)
            if due is not None:
                if due:
                    round_off(perf_counter())
                return
        if get_ident() != watcher.thread:
            return
        taken_over()
        update = left(optimizer)
        if update.inner:
            return
        if update.noted is None:
            watcher.clock.optimizer += max(perf_counter() - watcher.clock.others() - update.began, 0.0)
            after(optimizer, args, kwargs)
            return
        now = perf_counter()
        try:
            index, groups = update.noted.index, optimizer.param_groups
            ends = index == cycle.only or cycle.ends_with(index)
            rates = [groups[0].get("lr", 0.0)] if len(groups) == 1 else [g.get("lr", 0.0) for g in groups]
            own, seconds = update.began - update.asked, now - update.began
            note_plain((STEP, update.noted, update.norm, rates, own, seconds, now, ends))
            ended(ends, now)
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
            probes.plain_failed(error)

    probes.handles.append(register_optimizer_step_pre_hook(pre))
    probes.handles.append(register_optimizer_step_post_hook(post))

    def zeroed(*_: Any, **__: Any) -> None:
        watcher.optimizers.look_for_zeroing()
        watcher.pattern.add("z")
        if watcher.in_full:
            watcher.loop.tell(watcher.loop.gradients.look_for_clearing)

    note = probes.probe("zero-grad", zeroed)
    probes.around(Optimizer, "zero_grad", note, "z")
    probes.around(nn.Module, "zero_grad", note, "z")
    watch_schedulers(probes)
    watch_clipping(probes)
    watch_scaler(probes)


def calls_itself(optimizer: Optimizer, hooked: FrameType) -> bool:
    """Whether its `step` was called by its `step`: of a class of the program's, by `super().step()`.

    Torch calls hooks for both. `hooked` is the function of torch's that does so.
    """
    frame: FrameType | None = hooked
    for _ in range(MOST_BETWEEN):
        frame = frame.f_back if frame is not None else None
        if frame is not None and frame.f_code is hooked.f_code and frame.f_locals.get("self") is optimizer:
            return True
    return False


def watch_schedulers(probes: Probes) -> None:
    def stepped(_: Any, scheduler: Any, *__: Any, **___: Any) -> None:
        if not getattr(scheduler, "_is_initial", False):
            probes.watcher.pattern.add("h")
            probes.watcher.loop.tell(probes.watcher.loop.schedulers.stepped, scheduler)

    note = probes.probe("scheduler", stepped)
    for kind in vars(lr_scheduler).values():
        if isinstance(kind, type) and "step" in vars(kind):
            probes.around(kind, "step", note, "h", probes.watcher.loop.schedulers.count)


def watch_clipping(probes: Probes) -> None:
    watcher = probes.watcher
    tables: dict[Site, int] = {}

    def clipped(norm: Any, parameters: Any, limit: Any = float("nan"), *_: Any, **kwargs: Any) -> None:
        limit = kwargs.get("max_norm", kwargs.get("clip_value", limit))
        watcher.pattern.add("c")
        if norm is not None:  # clipping by value gives none
            watcher.clip_norm = float(limit)
        file, line = user_line(2)
        site = Site(op="clip", file=file, line=line, phase="train")
        table = tables.get(site)
        if table is None:
            table = tables[site] = watcher.sink.table(CLIP_SIGNALS, [watcher.sink.site(site)])
        value = float("nan") if norm is None else norm
        watcher.clock.defer(value, lambda step, v: watcher.sink.row(table, step, (v, float(limit))))

    note = probes.probe("clip", clipped)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        probes.around(nn.utils.clip_grad, name, note)
        probes.around(nn.utils, name, note)


def watch_scaler(probes: Probes) -> None:
    scaler = torch.amp.GradScaler

    def scaled(result: Any, _: Any, given: Any = None, *__: Any, **kwargs: Any) -> None:
        probes.watcher.scaled(kwargs.get("outputs", given), result)

    def unscaled(*_: Any, **__: Any) -> None:
        probes.watcher.pattern.add("u")
        probes.watcher.loop.upkeep.unscaled += 1

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if len(args) >= 3 and get_ident() == watcher.thread:
                deciding(*args[:3])
            return original(*args, **kwargs)

        return wrapper

    watcher, get_ident = probes.watcher, threading.get_ident
    deciding = probes.probe("scaler", watcher.scaling.deciding)
    probes.patches.wrap(scaler, "_maybe_opt_step", wrap)
    probes.around(scaler, "scale", probes.probe("scale", scaled))
    probes.around(scaler, "unscale_", probes.probe("unscale", unscaled))
