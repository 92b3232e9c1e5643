"""The seams of losses and of `backward()`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F
from torch.compiler import is_compiling

from clew.hooks.collect_loop.loss_calls import LOSSES
from clew.hooks.entry.patches import Wrap
from clew.hooks.entry.probes import Probes
from clew.measure.scalar import number


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
