"""The seams of a training step: losses, backward, optimizers, and what goes with them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.compiler import is_compiling
from torch.optim import Optimizer, lr_scheduler
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from clew.attach.frames import user_line
from clew.attach.losses import LOSSES
from clew.attach.optimizers import OptimizerState
from clew.attach.patching import Wrap
from clew.attach.plain_writing import STEP
from clew.attach.probes import Probes
from clew.capture.number import number
from clew.records import Site


def watch_losses(probes: Probes) -> None:
    watcher = probes.watcher
    note = probes.probe("loss", watcher.loss_called)
    failed = probes.probe("loss", watcher.losses.failed)
    grad_enabled, get_ident = torch.is_grad_enabled, threading.get_ident
    busy = False

    def wrap_as(kind: str) -> Wrap:
        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                nonlocal busy
                if is_compiling() or busy or get_ident() != watcher.thread:
                    return original(*args, **kwargs)
                plain = not watcher.sampling and grad_enabled()
                busy = not plain  # tensor subclasses call back into the function
                try:
                    result = original(*args, **kwargs)
                except Exception as error:
                    failed(kind, original, args, kwargs, error)
                    raise
                finally:
                    busy = False
                if plain:
                    return result
                note(kind, original, args, kwargs, result)
                return result

            return wrapper

        return wrap

    for kind in LOSSES:
        probes.patches.wrap(F, kind, wrap_as(kind))


def watch_backward(probes: Probes) -> None:
    watcher = probes.watcher
    plain = watcher.plain
    before = probes.probe("backward", watcher.before_backward)
    after = probes.probe("backward", watcher.after_backward)
    usually, derived = probes.plain(plain.usual.derive), plain.usual.derived
    take_over = probes.plain_inside(plain.derived)
    plain_loss, note_plain = probes.plain(number), probes.plain(plain.note_backward)
    get_ident = threading.get_ident

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or watcher.in_backward:
                return original(*args, **kwargs)
            usual = False
            try:
                usual = usually(args[0]) if args else False
                if usual:
                    result = original(*args, **kwargs)
                    if not derived():
                        take_over()
                    return result
            except BaseException as error:
                plain.dropped()
                if usual or not isinstance(error, Exception):
                    raise
                probes.plain_failed(error)  # nothing of ours may reach the user
            if usual is None:
                return original(*args, **kwargs)
            if plain.resting and args and get_ident() == watcher.thread:
                loss = None
                try:
                    plain.settle()
                    loss = plain_loss(args[0])
                except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                    probes.plain_failed(error)
                if loss is not None and loss - loss == 0.0:  # an ordinary backward of a finite number
                    began = perf_counter()
                    watcher.in_backward = True
                    try:
                        result = original(*args, **kwargs)
                    finally:
                        watcher.in_backward = False
                    try:
                        note_plain(loss, began)
                    except Exception as error:  # noqa: BLE001
                        probes.plain_failed(error)
                    return result
            if not watcher.follows_this_thread():
                return original(*args, **kwargs)
            before(args[0] if args else kwargs.get("tensors"))
            began = perf_counter()
            try:
                result = original(*args, **kwargs)
            finally:
                watcher.in_backward = False
                watcher.clock.backward += perf_counter() - began
            after()
            return result

        return wrapper

    probes.patches.wrap(torch.autograd, "backward", wrap)


def watch_optimizers(probes: Probes) -> None:
    watcher, get_ident = probes.watcher, threading.get_ident
    before = probes.probe("step", watcher.before_step)
    after = probes.probe("step", watcher.after_step)
    plain = watcher.plain
    cycle, states, ended = watcher.cycle, watcher.optimizers.by_id, plain.step_ended
    note_plain = probes.plain(plain.note)
    usually, updated = probes.plain(plain.usual.update), plain.usual.updated
    round_off = probes.plain_inside(plain.round_off)
    began = asked = norm = 0.0
    noted: OptimizerState | None = None  # of a plain step that is running

    def pre(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        nonlocal began, noted, asked, norm
        if is_compiling():
            return
        try:
            if usually(optimizer, args, kwargs):
                return
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
            probes.plain_failed(error)
        if get_ident() != watcher.thread:
            return
        noted = plain.updating = None
        if plain.resting and len(args) == 1 and not kwargs:
            asked = perf_counter()
            state = states.get(id(optimizer))
            try:
                plain.settle()
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
            began = perf_counter()
        if noted is None:
            before(optimizer, args, kwargs)
            # What a closure adds to the other parts of the step is not the optimizer's.
            began = perf_counter() - watcher.clock.others()

    def post(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        nonlocal noted, norm, asked, began
        if is_compiling():
            return
        due = updated(optimizer)
        if due is not None:
            if due:
                round_off(perf_counter())
            return
        if get_ident() != watcher.thread:
            return
        if plain.updating is not None:  # it was taken over from the library in the middle
            found, plain.updating = plain.updating, None
            noted, norm, asked, began = states.get(id(optimizer)), found.norm, found.asked, found.began
        if noted is not None:
            now = perf_counter()
            try:
                index, groups = noted.index, optimizer.param_groups
                ends = index == cycle.only or cycle.ends_with(index)
                rates = [groups[0].get("lr", 0.0)] if len(groups) == 1 else [g.get("lr", 0.0) for g in groups]
                note_plain((STEP, noted, norm, rates, began - asked, now - began, now, ends))
                ended(ends, now)
            except Exception as error:  # noqa: BLE001
                probes.plain_failed(error)
            return
        watcher.clock.optimizer += max(perf_counter() - watcher.clock.others() - began, 0.0)
        after(optimizer, args, kwargs)

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
            signals = ["clip.norm", "clip.limit"]
            table = tables[site] = watcher.sink.table(signals, [watcher.sink.site(site)])
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
