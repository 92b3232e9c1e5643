"""Wrappers and hooks on modules: calls, root models, where modules are created, and train/eval modes.

Global module hooks make torch take a slower path for every module call: microseconds each, and a large model
makes thousands. They are needed only to find models and on sampled steps. In between, a known root module is
followed through a wrapper around the `forward` of its class.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

from torch import nn
from torch.compiler import is_compiling
from torch.nn.modules import module as hooks
from torch.optim import Optimizer

from clew.hooks.collect_layers.trained_models import Root
from clew.hooks.entry.module_hooks import GlobalModuleHooks
from clew.hooks.entry.patches import Patches
from clew.hooks.entry.user_line import line_of_creation
from clew.hooks.seams.probes import Probes
from clew.hooks.steps.step_machine import StepMachine
from clew.hooks.steps.watcher import Watcher

SETTLED_AFTER = 3  # steps in which all models and optimizers of a typical program have appeared
# Of torch's own classes wrap containers only: wrapping `Linear.forward` would slow down every layer again.
_CONTAINERS = {"Sequential", "DistributedDataParallel", "DataParallel"}


class ModuleSeams:
    """Global module hooks, installed only while they are needed: see `root_forward`."""

    def __init__(self, probes: Probes) -> None:
        self._probes = probes
        self._hooks: GlobalModuleHooks | None = None  # while they are installed
        self._followed = FollowedModels(probes.watcher, probes.patches)
        self._hang_hooks()
        self._hide_hooks()
        watch_construction(probes)
        watch_modes(probes)

    def remove(self) -> None:
        """Remove the hooks; the wrappers are removed together with all others."""
        self._take_hooks()

    def _hang_hooks(self) -> None:
        machine, get_ident = self._probes.machine, threading.get_ident

        def before(module: nn.Module, args: Any) -> None:
            if is_compiling() or machine.in_backward or get_ident() != machine.thread:
                return
            machine.recorder.module_entered(module, args)

        def after(module: nn.Module, args: Any, kwargs: Any, *output: Any) -> None:
            if is_compiling() or machine.in_backward or get_ident() != machine.thread:
                return
            if output:
                machine.recorder.module_left(module, args, kwargs, output[0])
            else:  # after an exception torch passes no keyword arguments
                machine.recorder.module_left(module, args, {}, kwargs)

        self._hooks = GlobalModuleHooks(before, after, with_kwargs=True)
        machine.hooks_changed(hang=True)

    def _take_hooks(self) -> None:
        if self._hooks is not None:
            self._hooks.remove()
        self._hooks = None
        self._probes.machine.hooks_changed(hang=False)

    def hang_or_rest(self) -> bool:
        """Install the hooks for a sampled step, remove them for a light one. Returns whether they are off."""
        rest = self._followed.hooks_can_rest()
        if rest and self._hooks is not None:
            self._take_hooks()
        elif not rest and self._hooks is None:
            self._hang_hooks()
        return rest

    def _hide_hooks(self) -> None:
        """Hide our global hooks from torch.compile, which would warn about them."""

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper() -> Any:
                ours = self._hooks.ids if self._hooks is not None else set()
                kinds = (hooks._global_forward_pre_hooks, hooks._global_forward_hooks)
                if any(set(kind) - ours for kind in kinds):
                    return original()
                return hooks._global_backward_pre_hooks or hooks._global_backward_hooks

            return wrapper

        self._probes.patches.wrap(hooks, "_has_any_global_hook", wrap)


def watch_construction(probes: Probes) -> None:
    models, loop = probes.watcher.models, probes.watcher.loop

    def note_module(_: Any, module: nn.Module, *__: Any, **___: Any) -> None:
        models.note_made(module, *line_of_creation(module))

    def note_optimizer(_: Any, optimizer: Optimizer, *__: Any, **___: Any) -> None:
        probes.watcher.optimizers.note_created(optimizer)
        models.note_made(optimizer, *line_of_creation(optimizer))

    def note_parameter(
        _: Any, module: nn.Module, name: str, parameter: Any = None, *__: Any, **more: Any
    ) -> None:
        loop.call(loop.ties.registered, module, name, more.get("param", parameter))

    probes.around(nn.Module, "__init__", probes.probe("module-made", note_module))
    probes.around(nn.Module, "register_parameter", probes.probe("module-made", note_parameter))
    probes.around(Optimizer, "__init__", probes.probe("optimizer-made", note_optimizer))


def watch_modes(probes: Probes) -> None:
    note = probes.probe("mode", probes.watcher.modes.were_set)
    busy = False

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(module: nn.Module, mode: bool = True) -> Any:
            nonlocal busy
            if is_compiling() or busy or threading.get_ident() != probes.machine.thread:
                return original(module, mode)
            busy = True  # it calls itself for every submodule
            try:
                result = original(module, mode)
            finally:
                busy = False
            note(module, mode)
            return result

        return wrapper

    probes.patches.wrap(nn.Module, "train", wrap)


class ModelFollower:
    """What the wrappers report to.

    Pickling drops that link, since a program may send a class to another process.
    """

    def __init__(self, machine: StepMachine | None = None) -> None:
        self.machine = machine

    def __reduce__(self) -> tuple[type[ModelFollower], tuple[()]]:
        return ModelFollower, ()


class FollowedModels:
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
        self._watcher.machine.follow(module, root)
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
