"""Runs user code silently: no output, no warnings, and none of the user's hooks."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_modules
from torch.optim import optimizer as global_optimizers

from clew.hooks.entry.user_line import USER, kind_of

_ON_A_MODULE = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_ON_ALL_MODULES = (
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
)
_ON_ALL_OPTIMIZERS = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """No output and no warnings; eager, with gradients, without anomaly detection."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(no_warnings())
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(no_anomaly_mode())
        stack.enter_context(torch.enable_grad())
        stack.enter_context(eagerly())
        yield


@contextlib.contextmanager
def no_warnings() -> Iterator[None]:
    """Does not use `catch_warnings`: it makes Python forget which warnings it has shown."""
    shown = warnings.showwarning
    warnings.showwarning = lambda *_, **__: None
    try:
        yield
    finally:
        warnings.showwarning = shown


@contextlib.contextmanager
def no_anomaly_mode() -> Iterator[None]:
    """The user's anomaly detection would print a trace of Clew's code."""
    before, check = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    torch.set_anomaly_enabled(False)
    try:
        yield
    finally:
        torch.set_anomaly_enabled(before, check)


def eagerly() -> contextlib.AbstractContextManager[Any]:
    """Run compiled models eagerly."""
    stance = getattr(torch.compiler, "set_stance", None)
    return contextlib.nullcontext() if stance is None else stance("force_eager")


@contextlib.contextmanager
def without_users_hooks(modules: Iterable[nn.Module], tensors: Sequence[Tensor]) -> Iterator[None]:
    """Hooks of the user's own, on these and on all modules or optimizers, may count, print or collect:
    they are not called a second time."""
    registries = [vars(global_modules).get(name) for name in _ON_ALL_MODULES]
    registries += [vars(global_optimizers).get(name) for name in _ON_ALL_OPTIMIZERS]
    for module in modules:
        registries += [getattr(module, name, None) for name in _ON_A_MODULE]
    for tensor in tensors:
        registries += [tensor._backward_hooks, getattr(tensor, "_post_accumulate_grad_hooks", None)]
    taken = [(hooks, dict(hooks)) for hooks in registries if hooks]
    for hooks, before in taken:
        for key in [k for k, hook in before.items() if is_users(hook)]:
            del hooks[key]
    try:
        yield
    finally:
        for hooks, before in taken:
            if list(hooks.items()) != list(before.items()):
                hooks.clear()
                hooks.update(before)


def is_users(hook: Any) -> bool:
    """Whether a hook belongs to the program's own code."""
    code = getattr(hook, "__code__", None) or getattr(getattr(hook, "__func__", None), "__code__", None)
    return code is not None and kind_of(code.co_filename) == USER
