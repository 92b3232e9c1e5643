"""The one recorder of ops: what runs, in which modules, what it reads, writes and returns.

A dispatch mode sees every op, global hooks see every module call, so control flow, reuse and functional
calls appear in the program's own order. Subclasses decide what to do with them: `Tracer` describes a
forward, `Microscope` follows non-finite values, `Tape` keeps results to compare.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from clew.hooks.entry.module_hooks import GlobalModuleHooks
from clew.labs.snapshot.inplace_writes import written
from clew.measure.nested_tensors import tensors_in

if TYPE_CHECKING:
    from typing_extensions import Self


# Ops that return memory as it is.
UNINITIALISED = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided")
_SILENT = {"prim", "profiler"}  # namespaces of ops that compute nothing
_USER_NAMES = {  # torch's internal names, and those that users write
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_to_copy": "cast",
    "addmm": "linear",
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "dot": "matmul",
    "addmv": "linear",
    "baddbmm": "matmul",
    "native_batch_norm": "batch_norm",
    "_native_batch_norm_legit": "batch_norm",
    "_native_batch_norm_legit_functional": "batch_norm",
    "_batch_norm_with_update": "batch_norm",
    "cudnn_batch_norm": "batch_norm",
    "native_layer_norm": "layer_norm",
    "native_group_norm": "group_norm",
    "linalg_vector_norm": "norm",
    "convolution": "conv",
    "mkldnn_convolution": "conv",
    "nll_loss_forward": "nll_loss",
    "nll_loss2d_forward": "nll_loss",
    "_scaled_dot_product_flash_attention_for_cpu": "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention": "scaled_dot_product_attention",
    "_scaled_dot_product_efficient_attention": "scaled_dot_product_attention",
    "true_divide": "div",
    "divide": "div",
    "multiply": "mul",
    "subtract": "sub",
    "rsub": "sub",
    "_safe_softmax": "softmax",
}


class OpCall:
    """One op as it runs; `result` is set once it has."""

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.func = func
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None

    @cached_property
    def inputs(self) -> list[Tensor]:
        """The tensors among its arguments."""
        found = tensors_in(self.args)
        return [*found, *tensors_in(self.kwargs)] if self.kwargs else found

    @cached_property
    def writes(self) -> list[Tensor]:
        """The tensors among its arguments that it writes to."""
        return written(self.func, self.args, self.kwargs)

    @cached_property
    def outputs(self) -> list[Tensor]:
        """The tensors it returned."""
        return tensors_in(self.result)


class OpRecorder(TorchDispatchMode):
    """Records what runs inside it. Subclasses define what happens around each op and module call.

    `before_write` is called with each tensor that an op is about to write to, as `WriteJournal` needs it.
    """

    def __init__(self, before_write: Callable[[Tensor], None] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.modules: list[nn.Module] = []  # the running modules, innermost last
        self._before_write = before_write
        self._hooks = contextlib.ExitStack()
        self._depth = 0

    # -- for subclasses --

    def wants(self, func: Any) -> bool:
        """Whether to record this op."""
        return True

    def before_op(self, op: OpCall) -> None:
        """Called before the op runs and writes."""

    def run(self, op: OpCall) -> Any:
        """Run the op; an exception raised here fails it."""
        return op.func(*op.args, **op.kwargs)

    def after_op(self, op: OpCall) -> None:
        """Called after the op has run."""

    def op_failed(self, op: OpCall) -> None:
        """Called when the op has raised."""

    def entered(self, module: nn.Module, args: Any) -> None:
        """A module is being called; it is already in `modules`."""

    def left(self, module: nn.Module, args: Any, output: Any) -> None:
        """A module has returned or raised; it is no longer in `modules`."""

    # -- the machinery --

    def __enter__(self) -> Self:
        if not self._depth:
            self._hooks.enter_context(module_hooks(self._enter_module, self._leave_module))
        self._depth += 1
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)  # type: ignore[no-untyped-call]
        self._depth -= 1
        if not self._depth:
            self._hooks.close()
            self.modules.clear()

    def _enter_module(self, module: nn.Module, args: Any) -> None:
        self.modules.append(module)
        self.entered(module, args)

    def _leave_module(self, module: nn.Module, args: Any, output: Any) -> None:
        if not any(running is module for running in self.modules):
            return
        while self.modules.pop() is not module:
            pass  # an exception ended those inside it
        self.left(module, args, output)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _namespace(func) in _SILENT or not self.wants(func):
            return func(*args, **kwargs)
        if torch.is_inference_mode_enabled():  # composite ops arrive whole there
            with self:
                parts = func.decompose(*args, **kwargs) if hasattr(func, "decompose") else NotImplemented
            if parts is not NotImplemented:
                return parts
        op = OpCall(func, args, kwargs)
        self.before_op(op)
        if self._before_write is not None:
            for tensor in op.writes:
                self._before_write(tensor)
        try:
            op.result = self.run(op)
        except Exception:
            self.op_failed(op)
            raise
        self.after_op(op)
        return op.result


@contextlib.contextmanager
def module_hooks(
    before: Callable[[nn.Module, Any], None], after: Callable[..., None], *, with_kwargs: bool = False
) -> Iterator[None]:
    """Called around every call of a module, `after` also when it raises.

    `with_kwargs`: the hooks also get the keyword arguments; older versions of torch don't pass them.
    """

    def maybe_without_kwargs(module: nn.Module, args: Any, *rest: Any) -> None:
        after(module, args, rest[0] if len(rest) > 1 else {}, rest[-1])

    hooks = GlobalModuleHooks(before, maybe_without_kwargs if with_kwargs else after, with_kwargs=with_kwargs)
    try:
        yield
    finally:
        hooks.remove()


class ModulePaths:
    """The names of modules: the root they belong to, and their path in it."""

    def __init__(self, roots: Mapping[str, nn.Module]) -> None:
        self._known: dict[int, tuple[str, str]] = {}
        self._keep: list[nn.Module] = []  # an id is unique only while its owner lives
        for name, root in roots.items():
            self.add(name, root)

    def add(self, name: str, root: nn.Module) -> None:
        self._known.update({id(module): (name, path) for path, module in root.named_modules()})
        self._keep.append(root)

    def knows(self, module: nn.Module) -> bool:
        return id(module) in self._known

    def of(self, module: nn.Module) -> tuple[str, str] | tuple[None, None]:
        return self._known.get(id(module), (None, None))

    def innermost(self, running: list[nn.Module]) -> tuple[str, str] | tuple[None, None]:
        """The innermost running module that has a name."""
        for module in reversed(running):
            known = self._known.get(id(module))
            if known is not None:
                return known
        return None, None


@lru_cache(maxsize=4096)
def _namespace(func: Any) -> str:
    return str(getattr(func, "namespace", ""))


def plain_name(name: str) -> str:
    """`_log_softmax` under the name people know."""
    name = _USER_NAMES.get(name, name)
    return _USER_NAMES.get(name.rstrip("_"), name.rstrip("_") if not name.endswith("__") else name)


def op_name(function: Any) -> str:
    """The name of an ATen overload."""
    return plain_name(str(function._schema.name).partition("::")[2])


def node_name(node: Any) -> str:
    """`SqrtBackward0` is the gradient of `sqrt`; a custom Function keeps its class name."""
    name = str(node.name())
    name = name.removeprefix("torch::autograd::")
    stem = re.sub(r"Backward\d*$", "", name)
    if is_custom(node):
        return stem
    return plain_name(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower())


def is_custom(node: Any) -> bool:
    """Whether a node belongs to a `torch.autograd.Function` written in Python."""
    return hasattr(type(node), "_forward_cls")
