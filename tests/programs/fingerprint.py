"""What a training program leaves behind, printed as one digest per kind of state.

Two runs that print the same text trained the same weights and left the process in the same state.
"""

from __future__ import annotations

import gc
import hashlib
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

MODULE_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
OPTIMIZER_HOOKS = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")

# Unseeded generators differ between any two runs; a program may seed them again.
random.seed(0)
np.random.seed(0)

Thing = nn.Module | torch.Tensor | torch.optim.Optimizer


def fingerprint(*things: Thing, losses: Sequence[float] = ()) -> None:
    """Print the digests of these models, tensors and optimizers, and of the process."""
    if losses:
        head, tail = losses[:5], losses[-5:]
        print(f"loss       {sum(head) / len(head):.4f} -> {sum(tail) / len(tail):.4f}")
    parts = {
        "losses": list(map(float.hex, map(float, losses))),
        "tensors": [digest_tensor(t) for thing in things for t in tensors(thing)],
        "gradients": [g is not None and digest_tensor(g) for thing in things for g in gradients(thing)],
        "modules": [shape_of(m) for thing in things if isinstance(thing, nn.Module) for m in thing.modules()],
        "hooks": [hooks_of(thing) for thing in things],
        "rng": rng_state(),
        "torch": torch_state(),
        "process": process_state(),
    }
    for name, content in parts.items():
        print(f"{name:10} {hashlib.sha256(repr(content).encode()).hexdigest()[:32]}", flush=True)
    if os.environ.get("FINGERPRINT_DETAILS"):
        print(parts, file=sys.stderr)


def tensors(thing: Thing) -> Iterator[torch.Tensor]:
    """Parameters, buffers and optimizer state, in a fixed order."""
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, nn.Module):
        yield from thing.parameters()
        yield from thing.buffers()
    else:
        for state in thing.state.values():
            yield from (value for value in state.values() if isinstance(value, torch.Tensor))


def gradients(thing: Thing) -> Iterator[torch.Tensor | None]:
    if isinstance(thing, torch.Tensor):
        yield thing.grad
    elif isinstance(thing, nn.Module):
        yield from (p.grad for p in thing.parameters())


def digest_tensor(tensor: torch.Tensor) -> str:
    """Every bit of the values, and how they are laid out."""
    kind = f"{tensor.dtype} {tuple(tensor.shape)} {tensor.requires_grad}"
    dense = tensor.detach().coalesce().to_dense() if tensor.is_sparse else tensor.detach()
    layout = "sparse" if tensor.is_sparse else str(tensor.stride())
    values = dense.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return f"{kind} {layout} {hashlib.sha256(values).hexdigest()}"


def shape_of(module: nn.Module) -> tuple[Any, ...]:
    """Class, mode and attributes: a patched method or a stray attribute shows here."""
    return type(module).__qualname__, module.training, sorted(vars(module)), type(module).forward.__qualname__


def hooks_of(thing: Thing) -> list[int]:
    if isinstance(thing, torch.optim.Optimizer):
        return [len(getattr(thing, name)) for name in OPTIMIZER_HOOKS]
    if isinstance(thing, torch.Tensor):
        return tensor_hooks(thing)
    counts = [len(getattr(m, name, ())) for m in thing.modules() for name in MODULE_HOOKS]
    return counts + [count for p in thing.parameters() for count in tensor_hooks(p)]


def tensor_hooks(tensor: torch.Tensor) -> list[int]:
    found = (tensor._backward_hooks, getattr(tensor, "_post_accumulate_grad_hooks", None))
    return [len(hooks or ()) for hooks in found]


def rng_state() -> list[str]:
    states = [torch.get_rng_state().numpy().tobytes(), repr(np.random.get_state()), repr(random.getstate())]
    return [hashlib.sha256(s if isinstance(s, bytes) else s.encode()).hexdigest() for s in states]


def torch_state() -> list[Any]:
    return [
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_anomaly_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.get_num_interop_threads(),
        torch.autograd.graph.saved_tensors_hooks.__qualname__,
    ]


def process_state() -> list[Any]:
    handlers = {int(s): describe(signal.getsignal(s)) for s in sorted(signal.valid_signals())}
    filters = sorted(str((f[0], f[1] and f[1].pattern, f[2].__name__, f[4])) for f in warnings.filters)
    return [
        handlers,
        filters,
        describe(warnings.showwarning),
        describe(sys.excepthook),
        describe(sys.unraisablehook),
        describe(threading.excepthook),
        describe(sys.displayhook),
        sys.gettrace() is None,
        sys.getprofile() is None,
        sys.getrecursionlimit(),
        gc.isenabled(),
        gc.get_threshold(),
        sorted(np.geterr().items()),
        os.getcwd(),
        sys.argv[1:],
        __name__ in sys.modules,
        sys.modules["__main__"].__name__,
    ]


def describe(handler: Any) -> str:
    return getattr(handler, "__qualname__", repr(handler))
