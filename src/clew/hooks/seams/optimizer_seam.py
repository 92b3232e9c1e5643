"""Wrappers and hooks for optimizers: steps, zeroing, schedulers, gradient clipping, loss scaling."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.compiler import is_compiling
from torch.optim import Optimizer, lr_scheduler
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from clew.hooks.entry.user_line import user_line
from clew.hooks.seams.probes import Probes
from clew.records import signals
from clew.records.signal_types import names
from clew.records.site import Site

CLIP_SIGNALS = names(signals.CLIP_NORM, signals.CLIP_LIMIT)

_SCHEDULER_BASES = ("LRScheduler", "ReduceLROnPlateau", "SequentialLR", "ChainedScheduler")


def watch_optimizers(probes: Probes) -> None:
    machine = probes.machine

    def pre(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        recorder = machine.recorder
        try:
            recorder.update_entered(optimizer, args, kwargs)
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
            machine.failed(recorder, error).update_entered(optimizer, args, kwargs)

    def post(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        recorder = machine.recorder
        try:
            recorder.update_left(optimizer, args, kwargs)
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
            machine.failed(recorder, error)

    probes.handles.append(register_optimizer_step_pre_hook(pre))
    probes.handles.append(register_optimizer_step_post_hook(post))
    watch_zeroing(probes)
    watch_schedulers(probes)
    watch_clipping(probes)
    watch_scaler(probes)


def watch_zeroing(probes: Probes) -> None:
    machine = probes.machine

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not is_compiling():
                recorder = machine.recorder
                try:
                    recorder.gradients_zeroed()
                except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                    machine.failed(recorder, error).gradients_zeroed()
            return result

        return wrapper

    probes.patches.wrap(Optimizer, "zero_grad", wrap)
    probes.patches.wrap(nn.Module, "zero_grad", wrap)


def watch_schedulers(probes: Probes) -> None:
    machine, loop = probes.machine, probes.watcher.loop

    def made(_: Any, scheduler: Any, *__: Any, **___: Any) -> None:
        loop.call(loop.schedulers.made, scheduler)

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if args and not is_compiling():
                recorder = machine.recorder
                try:
                    recorder.scheduler_stepped(args[0])
                except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                    machine.failed(recorder, error).scheduler_stepped(args[0])
            return result

        return wrapper

    for kind in vars(lr_scheduler).values():
        if isinstance(kind, type) and "step" in vars(kind):
            probes.patches.wrap(kind, "step", wrap)
    note = probes.probe("scheduler", made)
    for name in _SCHEDULER_BASES:
        probes.around(getattr(lr_scheduler, name), "__init__", note)


def watch_clipping(probes: Probes) -> None:
    watcher = probes.watcher
    tables: dict[Site, int] = {}

    def clipped(norm: Any, parameters: Any, limit: Any = float("nan"), *_: Any, **kwargs: Any) -> None:
        limit = kwargs.get("max_norm", kwargs.get("clip_value", limit))
        watcher.clipped(float(limit), by_norm=norm is not None)  # clipping by value returns no norm
        file, line = user_line()
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
        probes.watcher.unscaled()

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if len(args) >= 3 and get_ident() == machine.thread:
                deciding(*args[:3])
            return original(*args, **kwargs)

        return wrapper

    machine, get_ident = probes.machine, threading.get_ident
    deciding = probes.probe("scaler", probes.watcher.scaling.deciding)
    probes.patches.wrap(scaler, "_maybe_opt_step", wrap)
    probes.around(scaler, "scale", probes.probe("scale", scaled))
    probes.around(scaler, "unscale_", probes.probe("unscale", unscaled))
