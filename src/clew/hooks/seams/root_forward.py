"""Wrapper around a model's `forward`, so that light steps need no hook on every layer.

Global module hooks make torch take a slower path for every module call: microseconds each, and a large model
makes thousands. They are needed only to find models and on sampled steps. In between, a known root module is
followed through a wrapper around the `forward` of its class.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from torch import nn
from torch.compiler import is_compiling

from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.entry.patches import Patches
from clew.hooks.steps.step_machine import StepMachine
from clew.hooks.steps.watcher import Watcher

SETTLED_AFTER = 3  # steps in which all models and optimizers of a typical program have appeared

# Of torch's own classes wrap containers only: wrapping `Linear.forward` would slow down every layer again.
_CONTAINERS = {"Sequential", "DistributedDataParallel", "DataParallel"}


class ModelFollower:
    """What the wrappers report to.

    Pickling drops that link, since a program may send a class to another process.
    """

    def __init__(self, machine: StepMachine | None = None) -> None:
        self.machine = machine

    def __reduce__(self) -> tuple[type[ModelFollower], tuple[()]]:
        return ModelFollower, ()


class Following:
    """Decides whether the global hooks can be removed, and wraps the classes of the root modules."""

    def __init__(self, watcher: Watcher, patches: Patches) -> None:
        self._watcher = watcher
        self._patches = patches
        self._known: tuple[int, int] = (-1, -1)
        self._settled = False
        self._classes: set[type] = set()
        self._follower = ModelFollower(watcher.machine)

    def hooks_can_rest(self) -> bool:
        """Whether it is between samples, every model is followed and every optimizer has stepped."""
        watcher = self._watcher
        if watcher.machine.sampling or watcher.models.compile_used or watcher.clock.step < SETTLED_AFTER:
            return False  # dynamo recompiles when global hooks come and go
        if watcher.cycle.lead is None:
            return False  # the program updates parameters by hand: its steps end with backward()
        known = (len(watcher.models.roots), watcher.optimizers.without_a_step())
        if known != self._known:
            self._known = known
            self._settled = known[0] > 0 and known[1] == 0 and self._follow_all()
        return self._settled

    def _follow_all(self) -> bool:
        return all(self._follow(root) for root in self._watcher.models.roots)

    def _follow(self, root: Root) -> bool:
        module = root.module()
        if module is None:
            return True
        owner = next((c for c in type(module).__mro__ if "forward" in vars(c)), None)
        if owner is None or not isinstance(vars(owner)["forward"], FunctionType):
            return False
        if owner.__module__.startswith("torch.") and owner.__name__ not in _CONTAINERS:
            return False
        self._watcher.machine.followed[id(module)] = root
        if owner not in self._classes:
            self._classes.add(owner)
            self._patches.wrap(owner, "forward", reporting_to(self._follower))
        return True


def reporting_to(follower: ModelFollower) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a wrapper for `forward` that keeps a reference only to the original and the follower."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(self, *args, **kwargs)
            machine = follower.machine
            if machine is None:
                return original(self, *args, **kwargs)
            recorder = machine.recorder
            try:
                entered = recorder.forward_entered(self, args, kwargs)
            except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                recorder = machine.failed(recorder, error)
                entered = recorder.forward_entered(self, args, kwargs)
            except BaseException:
                recorder.forward_raised(self, args)
                raise
            if not entered:
                return original(self, *args, **kwargs)
            try:
                output = original(self, *args, **kwargs)
            except BaseException:
                recorder.forward_raised(self, args)
                raise
            try:
                recorder.forward_left(self, args, kwargs, output)
            except Exception as error:  # noqa: BLE001 - nothing of ours may reach the user
                machine.failed(recorder, error)
            return output

        return forward

    return wrap
