"""The one way to run the user's code again and leave no trace.

It does not copy the modules: the user's code reaches them through its own names and closures. It
saves the following, and restores it bit by bit:

- random generators: torch's, numpy's, Python's, those of accelerators, and those that the owners hold;
- attributes of the owners and what is in their containers: modes per module, hooks, caches, counters;
- of parameters, buffers and other tensors given: the gradient, `requires_grad`, the values that an op
  recorder reports a write to (`WriteJournal`), or all values with `copy`;
- grad mode, default dtype and, when `quiet`, warnings, standard output, anomaly detection, hooks of the
  user's own, compilation and the cache of autocast.

`step_snapshot.py` runs whole training steps on it, `loader_copy.py` reads data on it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from clew.labs.snapshot.held_step import Autocast
from clew.labs.snapshot.inplace_writes import WriteJournal
from clew.labs.snapshot.module_state import ObjectState, own_tensors
from clew.labs.snapshot.plain_state import PlainState
from clew.labs.snapshot.quiet import quietly, without_users_hooks
from clew.measure.rng import Rng, keep_generators, keep_rng


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
