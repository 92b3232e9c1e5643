"""Compiles the models with torch.compile for one experiment, and lists the graph breaks.

Compiled code and caches are discarded, and the compiler's settings restored, afterwards.
"""

from __future__ import annotations

import contextlib
import importlib
import linecache
import logging
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from clew.hooks.entry.user_line import USER, kind_of
from clew.labs.profiler.step_experiments.step_runner import StepRunner, StepVariant
from clew.records.tried_changes import Break

BACKEND = "inductor"
CLEARER = {"generic_jump": "a branch depends on the value of a tensor"}  # for dynamo's own messages
MOST_BREAKS = 12  # that are listed
SECONDS_OF_OP = 0.25  # seconds to compile one op, with its backward; a conservative guess


def impossible() -> str:
    """Why nothing can be compiled here; empty if it can."""
    if not hasattr(torch, "compile"):
        return "this torch has no torch.compile"
    try:
        importlib.import_module("torch._dynamo.eval_frame").check_if_dynamo_supported()
    except Exception as error:  # noqa: BLE001 - an optional part of torch may fail in any way
        return f"torch.compile does not run here: {_first_line(error)}"
    if not torch.cuda.is_available() and not _has_compiler():
        return "torch.compile needs a C++ compiler on a CPU, but none was found (g++, clang++)"
    return ""


def _has_compiler() -> bool:
    try:
        find: Any = importlib.import_module("torch._inductor.cpp_builder").get_cpp_compiler
    except (ImportError, AttributeError):  # of another version: by name, then
        return any(shutil.which(name) for name in ("g++", "clang++", "cl"))
    try:
        return bool(find())
    except Exception:  # noqa: BLE001 - torch's way to say that there is none
        return False


def compiles_already() -> bool:
    """Whether the program itself compiled something."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters: Any = getattr(dynamo, "counters", {})
    return bool(counters.get("frames", {}).get("ok", 0)) if counters else False


class CompiledModels:
    """The models of a subject, compiled as `torch.compile(model)` does."""

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self._calls = [(model, _compiled_call(model)) for model in models]

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Inside it, calls of the models run the compiled code."""
        with running_compiled():
            try:
                for model, call in self._calls:
                    vars(model)["_compiled_call_impl"] = call
                yield
            finally:
                for model, _ in self._calls:
                    vars(model).pop("_compiled_call_impl", None)

    def variant(self, own: StepVariant) -> StepVariant:
        return replace(own, around=self.in_use)


def _compiled_call(model: nn.Module) -> Any:
    """As `torch.compile(model)` does, which traces into torch's own modules, such as Sequential."""
    rules: Any = importlib.import_module("torch._dynamo.trace_rules")
    inline: Any = importlib.import_module("torch._dynamo.external_utils").wrap_inline
    call = model._call_impl
    compiled: Any = torch.compile(inline(call) if rules.check(model.forward) else call, backend=BACKEND)
    return compiled


def running_compiled() -> contextlib.AbstractContextManager[Any]:
    """A snapshot runs everything eagerly; here compiled code is intended."""
    stance = getattr(torch.compiler, "set_stance", None)
    return contextlib.nullcontext() if stance is None else stance("default")


@contextlib.contextmanager
def clean_up_afterwards() -> Iterator[None]:
    """Afterwards nothing is compiled, no file is left, and the compiler's settings are restored."""
    dynamo: Any = importlib.import_module("torch._dynamo")
    inductor: Any = importlib.import_module("torch._inductor.config")
    before = logging.root.manager.disable
    failed: Exception | None = None
    with contextlib.ExitStack() as stack:
        stack.enter_context(_counted_by_the_program())
        stack.callback(dynamo.reset)
        stack.enter_context(_fresh_cache())
        stack.enter_context(inductor.patch(compile_threads=1))  # no subprocesses
        stack.callback(logging.disable, before)
        logging.disable(logging.CRITICAL)
        stack.enter_context(_no_warnings())
        dynamo.reset()
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised below: the cache would keep its files for it
            failed = error
    if failed is not None:
        raise failed


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """Even if the program turns them into errors. Set by hand, so that none counts as not yet shown."""
    filters: Any = warnings.filters
    entry = ("ignore", None, Warning, None, 0)
    filters.insert(0, entry)
    try:
        yield
    finally:
        filters[:] = [one for one in filters if one is not entry]


@contextlib.contextmanager
def _counted_by_the_program() -> Iterator[None]:
    """Dynamo's counters show what a program compiled: our compilations don't count."""
    counters: Any = importlib.import_module("torch._dynamo.utils").counters
    before = {name: counter.copy() for name, counter in counters.items()}
    try:
        yield
    finally:
        counters.clear()
        counters.update(before)


def _fresh_cache() -> contextlib.AbstractContextManager[Any]:
    utils = importlib.import_module("torch._inductor.utils")
    make = getattr(utils, "fresh_cache", None) or getattr(utils, "fresh_inductor_cache", None)
    return contextlib.nullcontext() if make is None else make()


def find_graph_breaks(runner: StepRunner, calls: Sequence[tuple[str, Any, Any]]) -> tuple[list[Break], int]:
    """Where the graphs of the outermost models' calls break, and how many ops there are to compile."""
    dynamo: Any = importlib.import_module("torch._dynamo")
    found: dict[tuple[str, str | None, int | None], Break] = {}
    ops = 0
    for name, args, kwargs in {name: (name, args, kwargs) for name, args, kwargs in calls}.values():
        runner.start(StepVariant())
        with running_compiled():
            answer = dynamo.explain(runner.subject.models[name])(*args, **kwargs)
        ops += int(answer.op_count)
        for reason in answer.break_reasons:
            one = _break(reason)
            found.setdefault((one.reason, one.file, one.line), one)
    return list(found.values())[:MOST_BREAKS], ops


def _break(reason: Any) -> Break:
    """The reason in one line, at the user's innermost line."""
    frames = list(getattr(reason, "user_stack", None) or ())
    own = [f for f in frames if kind_of(f.filename) == USER] or frames
    text = _first_line(getattr(reason, "reason", reason))
    text = next((words for sign, words in CLEARER.items() if sign in text), text)
    if not own:
        return Break(text)
    file, line = own[-1].filename, own[-1].lineno
    return Break(text, file, line, linecache.getline(file, line).strip() if line else "")


def _first_line(error: Any) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:240]
