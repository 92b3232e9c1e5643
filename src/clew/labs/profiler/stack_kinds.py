"""What a stack was doing, as one of `step_costs.PARTS`: based on the first landmark below the user's loop.

A landmark is a function that everything of its kind goes through: a loader's `__next__`, a module's
call, `backward`, an optimizer's `step`, `print`. The outermost one counts: a dataset that prints is data.
"""

from __future__ import annotations

import os
from functools import lru_cache
from types import CodeType

from clew.hooks.entry.patches import INVISIBLE
from clew.hooks.entry.user_line import HIDDEN, USER, kind_of
from clew.labs.profiler.stack_sampler import Call, Stack
from clew.records.version import PACKAGE

LOGGING, DATA, TO_DEVICE, CLEW, REST = "logging", "data", "to device", "clew", "rest"
FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
WEAK = "weak logging"  # a progress bar around a loader: what it waits for is not logging

_WRITERS = {
    "logging", "tqdm", "tensorboard", "tensorboardX", "wandb", "mlflow", "matplotlib", "rich", "neptune",
    "comet_ml", "clearml", "ipykernel", "aim", "loguru", "seaborn", "plotly", "progressbar", "alive_progress",
    "dvclive",
}  # fmt: skip
_BARS = {"tqdm", "rich", "progressbar", "alive_progress"}
_SUPPLIERS = {"datasets", "albumentations", "webdataset", "torchdata", "kornia.augmentation", "ffcv"}
_PRINTING = {"print", "TextIOWrapper.write", "TextIOWrapper.flush", "TextIOWrapper.writelines"}
_MOVING = {"to", "cuda", "xpu", "npu", "mps", "pin_memory"}
_TENSOR = ("TensorBase.", "_TensorBase.", "Tensor.")
_SEP = os.sep


def kind_of_stack(stack: Stack, accelerator: bool = False) -> str:
    """One of `step_costs.PARTS`."""
    found = [landmark(call, accelerator) for call in stack]
    strong = next((kind for kind in found if kind and kind != WEAK), "")
    if strong:
        return strong
    return LOGGING if WEAK in found else REST


def landmark(call: Call, accelerator: bool) -> str:
    """The kind that a call indicates; empty for most calls."""
    function, _ = call
    if isinstance(function, str):
        return _of_builtin(function, accelerator)
    return _of_code(function)


def _of_builtin(name: str, accelerator: bool) -> str:
    if name in _PRINTING:
        return LOGGING
    moves = name.startswith(_TENSOR) and name.rpartition(".")[2] in _MOVING
    return TO_DEVICE if moves and accelerator else ""


@lru_cache(maxsize=20_000)
def _of_code(code: CodeType) -> str:
    file, name = code.co_filename, code.co_name
    if kind_of(file) == USER:
        return DATA if name == "__getitem__" else ""
    if file.startswith(PACKAGE):
        return LOGGING if name == "log" and file.endswith(f"{_SEP}session.py") else ""
    package = package_of(file)
    if package == "torch":
        return _of_torch(file, name)
    if package in _WRITERS or f"{_SEP}loggers{_SEP}" in file:
        return WEAK if package in _BARS and name in ("__iter__", "__next__", "track") else LOGGING
    if package in _SUPPLIERS or (package == "torchvision" and f"{_SEP}models{_SEP}" not in file):
        return DATA
    return ""


def _of_torch(file: str, name: str) -> str:
    inside = file.rpartition(f"{_SEP}torch{_SEP}")[2].replace(_SEP, "/")
    if inside.startswith("utils/data/"):
        return DATA
    if inside.startswith(("utils/tensorboard/", "_tensor_str.py")):
        return LOGGING
    if inside == "nn/modules/module.py" and name in ("_wrapped_call_impl", "_call_impl", "__call__"):
        return FORWARD
    if inside in ("_tensor.py", "autograd/__init__.py") and name in ("backward", "grad"):
        return BACKWARD
    if inside.startswith("optim/") and not inside.endswith(("lr_scheduler.py", "swa_utils.py")):
        return OPTIMIZER
    return ""


def package_of(file: str) -> str:
    """The installed package or standard module of a file: `tqdm` for …/site-packages/tqdm/std.py."""
    for folder in ("site-packages", "dist-packages"):
        _, found, rest = file.rpartition(f"{_SEP}{folder}{_SEP}")
        if found:
            return rest.split(_SEP)[0].removesuffix(".py")
    if kind_of(file) == HIDDEN and not file.startswith("<"):
        parts = file.split(_SEP)
        return parts[-2] if parts[-1] == "__init__.py" else parts[-1].removesuffix(".py")
    return ""


# -- whose frames they are --


def is_clew(call: Call) -> bool:
    """One of Clew's functions, or one of its wrappers around torch's."""
    function, _ = call
    if isinstance(function, str):
        return False
    return function.co_filename == INVISIBLE or function.co_filename.startswith(PACKAGE)


def own_calls(stack: Stack) -> Stack | None:
    """The stack from the user's first frame, without Clew's; None where the time was Clew's own."""
    first = next((n for n, call in enumerate(stack) if is_users(call)), None)
    if first is None:
        return None if any(is_clew(call) for call in stack) else stack
    below = stack[first:]
    last = max((n for n, call in enumerate(below) if is_users(call)), default=0)
    if any(_works_for_us(call) for call in below[last:]):
        return None
    return tuple(call for call in below if not is_clew(call) or _is_logged(call))


def is_users(call: Call) -> bool:
    """A frame of the user's own files."""
    function, _ = call
    return not isinstance(function, str) and kind_of(function.co_filename) == USER


def _works_for_us(call: Call) -> bool:
    function, _ = call
    if isinstance(function, str) or _is_logged(call):
        return False
    return function.co_filename.startswith(PACKAGE) and kind_of(function.co_filename) != USER


def _is_logged(call: Call) -> bool:
    """`clew.log` is what the user asked for."""
    return not isinstance(call[0], str) and is_clew(call) and _of_code(call[0]) == LOGGING
