"""Wrappers around torch's loss functions and `backward()`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.compiler import is_compiling

from clew.hooks.collect_loop.loss_calls import LOSSES
from clew.hooks.entry.patches import Wrap
from clew.hooks.seams.probes import Probes, report


def watch_losses(probes: Probes) -> None:
    machine, get_ident = probes.machine, threading.get_ident
    busy = False

    def wrap_as(kind: str) -> Wrap:
        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                nonlocal busy
                if is_compiling() or busy or get_ident() != machine.thread:
                    return original(*args, **kwargs)
                recorder = machine.recorder
                try:
                    reported = recorder.loss_entered()
                except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                    recorder = machine.failed(recorder, error)
                    reported = recorder.loss_entered()
                busy = reported  # tensor subclasses call back into the function
                try:
                    result = original(*args, **kwargs)
                except Exception as error:
                    report(machine, recorder, "loss_raised", kind, original, args, kwargs, error)
                    raise
                finally:
                    busy = False
                if reported:
                    report(machine, recorder, "loss_called", kind, original, args, kwargs, result)
                return result

            return wrapper

        return wrap

    for kind in LOSSES:
        probes.patches.wrap(F, kind, wrap_as(kind))


def watch_backward(probes: Probes) -> None:
    machine = probes.machine

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(*args, **kwargs)
            recorder = machine.recorder
            tensors = args[0] if args else kwargs.get("tensors")
            try:
                entered = recorder.backward_entered(tensors)
            except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                recorder = machine.failed(recorder, error)
                entered = recorder.backward_entered(tensors)
            except BaseException:
                recorder.backward_raised()
                raise
            if not entered:
                return original(*args, **kwargs)
            try:
                result = original(*args, **kwargs)
            except BaseException:
                recorder.backward_raised()
                raise
            try:
                recorder.backward_left()
            except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                machine.failed(recorder, error)
            return result

        return wrapper

    probes.patches.wrap(torch.autograd, "backward", wrap)
