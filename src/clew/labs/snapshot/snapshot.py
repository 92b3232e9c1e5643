"""The one way to run the user's code again and leave no trace.

It does not copy the modules: the user's code reaches them through its own names and closures. It
saves the following, and restores it bit by bit:

- random generators: torch's, numpy's, Python's, those of accelerators, and the owners' own;
- attributes of the owners and what is in their containers: modes per module, hooks, caches, counters;
- of parameters, buffers and other tensors given: the gradient, `requires_grad`, the values that an op
  recorder reports a write to (`WriteJournal`), or all values with `copy`;
- grad mode, default dtype and, when `quiet`, warnings, standard output, anomaly detection, hooks of the
  user's own, compilation and the cache of autocast.

`step_snapshot.py` runs whole training steps on it, `loaders/readable_loader.py` reads data on it.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as global_modules
from torch.optim import optimizer as global_optimizers
from torch.utils.hooks import RemovableHandle

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.snapshot.inplace_writes import WriteJournal
from clew.labs.snapshot.module_state import ObjectState, PlainState, own_tensors
from clew.measure.rng import Rng, keep_generators, keep_rng

_ON_A_MODULE = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_ON_ALL_MODULES = (
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
)
_ON_ALL_OPTIMIZERS = ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks")


@dataclass(frozen=True)
class Autocast:
    """The autocast settings when the forward began."""

    device: str = "cpu"
    enabled: bool = False
    dtype: torch.dtype | None = None


@contextlib.contextmanager
def snapshot(
    owners: Iterable[Any] = (),
    *,
    tensors: Iterable[Tensor] = (),
    copy: bool = False,
    quiet: bool = True,
    rng: Rng | None = None,
    autocast: Autocast | None = None,
) -> Iterator[WriteJournal]:
    """A context to run code in; afterwards all state is restored.

    `owners` are the objects whose attributes are restored: all modules, one by one, and what else the code
    may change. `tensors` are those that no owner has: inputs, parameters that only an optimizer knows.
    `copy`: all values are copied now, for code that runs without an op recorder. `rng` and `autocast`
    are the state that the code starts from; by default that is the current state.
    """
    owners = list(owners)
    modules = [owner for owner in owners if isinstance(owner, nn.Module)]
    saved = [ObjectState(owner) for owner in owners]
    leaves = list({id(t): t for t in (*own_tensors(modules), *tensors)}.values())
    plain = [t for one in saved if one.is_module for t in one.plain_tensors()]
    journal = WriteJournal([*leaves, *plain])
    with contextlib.ExitStack() as stack:
        stack.callback(_Flags([*leaves, *plain]).restore)
        stack.callback(journal.undo)
        if copy:
            for tensor in leaves:
                journal.copy(tensor)
            stack.callback(PlainState.take(owners).put)
        for one in saved:
            stack.callback(one.restore)
        stack.enter_context(keep_rng())
        stack.enter_context(keep_generators(g for one in saved for g in one.generators()))
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        stack.enter_context(torch.set_grad_enabled(torch.is_grad_enabled()))
        if quiet:
            stack.callback(torch.clear_autocast_cache)
            stack.enter_context(quietly())
            stack.enter_context(without_users_hooks(modules, leaves))
        if autocast is not None and autocast.enabled:
            stack.enter_context(torch.autocast(autocast.device, autocast.dtype, cache_enabled=False))
        if rng is not None:
            rng.put()
        yield journal


def network_snapshot(
    model: nn.Module | None, inputs: Iterable[Tensor] = ()
) -> contextlib.AbstractContextManager[WriteJournal]:
    """For one forward of a model: its output and warnings are shown, and the user's hooks run."""
    return snapshot(model.modules() if model is not None else (), tensors=inputs, quiet=False)


class _Flags:
    """The gradients of tensors, by reference, and their `requires_grad`."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self._wants = [(tensor, tensor.requires_grad) for tensor in tensors]
        self._gradients = [(tensor, tensor.grad) for tensor in tensors if tensor.is_leaf]

    def restore(self) -> None:
        for tensor, before in self._wants:
            _require(tensor, before)
        for tensor, gradient in self._gradients:
            if tensor.grad is not gradient:
                tensor.grad = gradient


def _require(tensor: Tensor, before: bool) -> None:
    """A cache that was written to has a graph now; a parameter may have been frozen."""
    if tensor.requires_grad == before:
        return
    if not tensor.is_leaf:
        tensor.detach_()
    if tensor.requires_grad != before:
        tensor.requires_grad_(before)


@contextlib.contextmanager
def hooked(*handles: RemovableHandle) -> Iterator[None]:
    """Remove these hooks afterwards."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """No output and no warnings; eager, with gradients, without anomaly detection."""
    with (
        no_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        no_anomaly_mode(),
        torch.enable_grad(),
        eagerly(),
    ):
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
    """The user's hooks, on these and on all modules or optimizers, may count, print or collect:
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
