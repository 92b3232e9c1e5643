"""Where Clew gets into torch: global hooks, and wrappers around the functions that have none.

Each seam calls one method of the watcher under a guard, and comes off again without a trace.
Wrappers let a compiler through first: dynamo traces `is_compiling()` to a constant, and what
follows it disappears.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.compiler import is_compiling
from torch.nn.modules import module as hooks
from torch.optim import Optimizer, lr_scheduler
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from clew.attach import loaders
from clew.attach.following import Following
from clew.attach.frames import line_of_creation, user_line
from clew.attach.guard import Guard
from clew.attach.losses import LOSSES
from clew.attach.patching import Patches, Wrap
from clew.attach.plain import DATA, OTHER
from clew.attach.watcher import Watcher
from clew.records import Site

CENTRAL = ("forward", "backward", "step")  # without one of these the others make no sense

Probe = Callable[..., None]


class Seams:
    """Installs and removes everything that attaches a watcher to torch."""

    def __init__(self, watcher: Watcher, guard: Guard) -> None:
        self._watcher = watcher
        self._guard = guard
        self._patches = Patches()
        self._handles: list[Any] = []
        self._module_handles: list[Any] = []
        self._module_hooks: tuple[Callable[..., None], Callable[..., None]]
        self._following = Following(watcher, self._patches)  # anew at each installation
        self._clip_tables: dict[Site, int] = {}
        self.installed = False

    def install(self) -> None:
        """Attach; a second call does nothing."""
        if self.installed:
            return
        self.installed = True
        self._following = Following(self._watcher, self._patches)
        self._watcher.thread = threading.get_ident()
        self._watcher.clock.restart()
        self._watch_modules()
        self._watch_losses()
        self._watch_backward()
        self._watch_optimizers()
        self._watch_data()
        self._watch_checkpoints()
        self._watch_compilers()

    def remove(self) -> None:
        """Detach: torch is as it was."""
        if not self.installed:
            return
        self.installed = False
        self._ask(self._watcher.plain.write)()
        self._watcher.plain.resting = False
        self._take_module_hooks()
        self._following.follower.active = False
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._patches.remove()
        self._watcher.reset_depth()

    def _probe(self, name: str, function: Callable[..., None]) -> Probe:
        plain = self._watcher.plain

        def in_order(*args: Any, **kwargs: Any) -> None:
            if plain.events:  # what was only noted came before this
                plain.write()
            function(*args, **kwargs)

        return self._guard.probe(name, in_order, self._watcher.halt if name in CENTRAL else None)

    def _ask(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What is done on plain steps; if any of it fails, every step is a closer one again."""
        return self._guard.ask("plain", function, self._watcher.halt)

    def _noting(self, letter: str, probe: Probe) -> Probe:
        """On plain steps just note the event, else look closer."""
        plain = self._watcher.plain

        def note(*args: Any, **kwargs: Any) -> None:
            if plain.resting:
                plain.note((OTHER, letter))
            else:
                probe(*args, **kwargs)

        return note

    def _around(self, owner: Any, name: str, after: Probe) -> None:
        """Call `after(result, *args, **kwargs)` when a function of torch's returned."""
        watcher = self._watcher

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                if not is_compiling() and threading.get_ident() == watcher.thread:
                    after(result, *args, **kwargs)
                return result

            return wrapper

        self._patches.wrap(owner, name, wrap)

    # -- modules --

    def _watch_modules(self) -> None:
        watcher, get_ident = self._watcher, threading.get_ident
        enter = self._probe("forward", watcher.enter_module)
        leave = self._probe("forward", watcher.leave_module)

        def before(module: nn.Module, args: Any) -> None:
            if is_compiling() or watcher.in_backward or get_ident() != watcher.thread:
                return
            if watcher.depth and not watcher.sampling:
                watcher.depth += 1
            else:
                enter(module, args)

        def after(module: nn.Module, args: Any, *rest: Any) -> None:
            if is_compiling() or watcher.in_backward or get_ident() != watcher.thread:
                return
            if watcher.depth > 1 and not watcher.sampling:
                watcher.depth -= 1
            else:
                # After an exception torch passes no keyword arguments, and no result.
                leave(module, args, rest[0] if len(rest) > 1 else {}, rest[-1])

        self._module_hooks = (before, after)
        follower = self._following.follower
        follower.enter, follower.leave = enter, leave
        follower.plainly, follower.note = self._ask(follower.is_plain), self._ask(follower.note_forward)
        self._hang_module_hooks()
        self._hide_hooks()
        self._watch_construction()
        self._watch_modes()

    def _hang_module_hooks(self) -> None:
        before, after = self._module_hooks
        self._module_handles = [
            hooks.register_module_forward_pre_hook(before),
            hooks.register_module_forward_hook(after, with_kwargs=True, always_call=True),
        ]
        self._following.follower.active = False

    def _take_module_hooks(self) -> None:
        for handle in self._module_handles:
            handle.remove()
            # torch forgets these two, and torch.compile would go on to warn of hooks.
            hooks._global_forward_hooks_with_kwargs.pop(handle.id, None)
            hooks._global_forward_hooks_always_called.pop(handle.id, None)
        self._module_handles = []

    def between_steps(self, step: int) -> None:
        """Hang the module hooks up for a sampled step, and take them down for others."""
        if not self.installed:
            return
        rest = self._following.hooks_can_rest()
        self._watcher.plain.resting = rest
        if rest and self._module_handles:
            self._take_module_hooks()
            self._following.follower.active = True
        elif not rest and not self._module_handles:
            self._hang_module_hooks()

    def _hide_hooks(self) -> None:
        """torch.compile warns of global hooks; ours step aside for it, so there is nothing to warn of."""

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper() -> Any:
                ours = {handle.id for handle in self._module_handles}
                kinds = (hooks._global_forward_pre_hooks, hooks._global_forward_hooks)
                if any(set(kind) - ours for kind in kinds):
                    return original()
                return hooks._global_backward_pre_hooks or hooks._global_backward_hooks

            return wrapper

        self._patches.wrap(hooks, "_has_any_global_hook", wrap)

    def _watch_construction(self) -> None:
        models = self._watcher.models

        def note_module(_: Any, module: nn.Module, *__: Any, **___: Any) -> None:
            models.note_made(module, *line_of_creation(module))

        def note_optimizer(_: Any, optimizer: Optimizer, *__: Any, **___: Any) -> None:
            self._watcher.optimizers.note_created(optimizer)
            models.note_made(optimizer, *line_of_creation(optimizer))

        self._around(nn.Module, "__init__", self._probe("module-made", note_module))
        self._around(Optimizer, "__init__", self._probe("optimizer-made", note_optimizer))

    def _watch_modes(self) -> None:
        watcher = self._watcher
        note = self._probe("mode", watcher.mode_set)
        busy = False

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(module: nn.Module, mode: bool = True) -> Any:
                nonlocal busy
                if is_compiling() or busy or threading.get_ident() != watcher.thread:
                    return original(module, mode)
                busy = True  # it calls itself for every submodule
                try:
                    result = original(module, mode)
                finally:
                    busy = False
                note(module, mode)
                return result

            return wrapper

        self._patches.wrap(nn.Module, "train", wrap)

    # -- losses and backward --

    def _watch_losses(self) -> None:
        watcher = self._watcher
        note = self._probe("loss", watcher.loss_called)
        busy = False

        def wrap_as(kind: str) -> Wrap:
            def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
                def wrapper(*args: Any, **kwargs: Any) -> Any:
                    nonlocal busy
                    if is_compiling() or busy or threading.get_ident() != watcher.thread:
                        return original(*args, **kwargs)
                    if not watcher.sampling and torch.is_grad_enabled():
                        return original(*args, **kwargs)
                    busy = True  # tensor subclasses call back into the function
                    try:
                        result = original(*args, **kwargs)
                    finally:
                        busy = False
                    note(kind, original, args, kwargs, result)
                    return result

                return wrapper

            return wrap

        for kind in LOSSES:
            self._patches.wrap(F, kind, wrap_as(kind))

    def _watch_backward(self) -> None:
        watcher = self._watcher
        plain = watcher.plain
        before = self._probe("backward", watcher.before_backward)
        after = self._probe("backward", watcher.after_backward)
        plain_loss = self._ask(plain.can_note_loss)
        note_plain = self._ask(plain.note_backward)

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if is_compiling() or watcher.in_backward or not watcher.follows_this_thread():
                    return original(*args, **kwargs)
                if plain.resting and args and plain_loss(args[0]):
                    began = perf_counter()
                    watcher.in_backward = True
                    try:
                        result = original(*args, **kwargs)
                    finally:
                        watcher.in_backward = False
                    note_plain(began)
                    return result
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

        self._patches.wrap(torch.autograd, "backward", wrap)

    # -- optimizers --

    def _watch_optimizers(self) -> None:
        watcher, get_ident = self._watcher, threading.get_ident
        before = self._probe("step", watcher.before_step)
        after = self._probe("step", watcher.after_step)
        plain = watcher.plain
        plain_norm, plain_step = self._ask(plain.gradient_norm), self._ask(plain.note_step)
        began = ready = 0.0
        norm: float | None = None

        def pre(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
            nonlocal began, ready, norm
            if is_compiling() or get_ident() != watcher.thread:
                return
            norm = None
            if plain.resting and len(args) == 1 and not kwargs:
                began = perf_counter()
                norm = plain_norm(optimizer)
                ready = perf_counter()
            if norm is None:
                before(optimizer, args, kwargs)
                # What a closure adds to the other parts of the step is not the optimizer's.
                began = perf_counter() - watcher.clock.others()

        def post(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
            if is_compiling() or get_ident() != watcher.thread:
                return
            if norm is not None:
                plain_step(optimizer, norm, began, ready)
                return
            watcher.clock.optimizer += max(perf_counter() - watcher.clock.others() - began, 0.0)
            after(optimizer, args, kwargs)

        self._handles.append(register_optimizer_step_pre_hook(pre))
        self._handles.append(register_optimizer_step_post_hook(post))

        def zeroed(*_: Any, **__: Any) -> None:
            watcher.optimizers.look_for_zeroing()
            watcher.pattern.add("z")

        note = self._noting("z", self._probe("zero-grad", zeroed))
        self._around(Optimizer, "zero_grad", note)
        self._around(nn.Module, "zero_grad", note)
        self._watch_schedulers()
        self._watch_clipping()
        self._watch_scaler()

    def _watch_schedulers(self) -> None:
        def stepped(_: Any, scheduler: Any, *__: Any, **___: Any) -> None:
            if not getattr(scheduler, "_is_initial", False):
                self._watcher.pattern.add("h")

        note = self._noting("h", self._probe("scheduler", stepped))
        for kind in vars(lr_scheduler).values():
            if isinstance(kind, type) and "step" in vars(kind):
                self._around(kind, "step", note)

    def _watch_clipping(self) -> None:
        watcher = self._watcher

        def clipped(norm: Any, parameters: Any, limit: Any = float("nan"), *_: Any, **kwargs: Any) -> None:
            limit = kwargs.get("max_norm", kwargs.get("clip_value", limit))
            watcher.pattern.add("c")
            file, line = user_line(2)
            site = Site(op="clip", file=file, line=line, phase="train")
            table = self._clip_tables.get(site)
            if table is None:
                signals = ["clip.norm", "clip.limit"]
                table = self._clip_tables[site] = watcher.sink.table(signals, [watcher.sink.site(site)])
            value = float("nan") if norm is None else norm
            watcher.clock.defer(value, lambda step, v: watcher.sink.row(table, step, (v, float(limit))))

        note = self._probe("clip", clipped)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            self._around(nn.utils.clip_grad, name, note)
            self._around(nn.utils, name, note)

    def _watch_scaler(self) -> None:
        scaler = torch.amp.GradScaler

        def scaled(result: Any, _: Any, given: Any = None, *__: Any, **kwargs: Any) -> None:
            self._watcher.scaled(kwargs.get("outputs", given), result)

        def unscaled(*_: Any, **__: Any) -> None:
            self._watcher.pattern.add("u")

        self._around(scaler, "scale", self._probe("scale", scaled))
        self._around(scaler, "unscale_", self._probe("unscale", unscaled))

    # -- data and checkpoints --

    def _watch_data(self) -> None:
        watcher = self._watcher
        known: set[Any] = set()

        def iterated(_: Any, loader: DataLoader[Any], *__: Any, **___: Any) -> None:
            file, line = user_line(2)
            if (id(loader), file, line) not in known:
                known.add((id(loader), file, line))
                fact = loaders.loader_fact(loader, len(known) - 1, file, line)
                watcher.sink.fact("loader", watcher.clock.step, fact)

        plain = watcher.plain

        def arrived(seconds: float) -> None:
            watcher.clock.data += seconds
            watcher.pattern.add("d")
            watcher.reset_depth()

        note = self._probe("batch", arrived)

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(iterator: Any) -> Any:
                if threading.get_ident() != watcher.thread:
                    return original(iterator)
                began = perf_counter()
                result = original(iterator)
                seconds = perf_counter() - began
                if plain.resting:
                    plain.note((DATA, seconds))
                else:
                    note(seconds)
                return result

            return wrapper

        self._around(DataLoader, "__iter__", self._probe("loader", iterated))
        self._patches.wrap(_BaseDataLoaderIter, "__next__", wrap)

    def _watch_checkpoints(self) -> None:
        watcher = self._watcher

        def event(kind: str) -> Probe:
            def happened(*_: Any, **__: Any) -> None:
                file, line = user_line(2)
                watcher.sink.event(kind, watcher.clock.step, {"file": file, "line": line})

            return happened

        def loaded(_: Any, module: nn.Module, *__: Any, **___: Any) -> None:
            watcher.models.note_loaded(module)

        self._around(torch, "save", self._probe("save", event("checkpoint-save")))
        self._around(torch, "load", self._probe("load", event("checkpoint-load")))
        self._around(nn.Module, "load_state_dict", self._probe("load-state", loaded))

    # -- compilers --

    def _watch_compilers(self) -> None:
        models = self._watcher.models

        def compiling(_: Any, module: Any = None, *__: Any, **___: Any) -> None:
            models.compile_used = True

        def compiled_in_place(_: Any, module: nn.Module, *__: Any, **___: Any) -> None:
            models.compile_used = True
            models.root_of(module)  # its calls will not be seen from outside

        self._around(torch, "compile", self._probe("compile", compiling))
        self._around(nn.Module, "compile", self._probe("compile", compiled_in_place))

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                # TorchScript compiles from source, or records every op: it must not meet us.
                self.remove()
                try:
                    return original(*args, **kwargs)
                finally:
                    self.install()

            return wrapper

        for name in ("script", "trace", "trace_module"):
            self._patches.wrap(torch.jit, name, wrap)
