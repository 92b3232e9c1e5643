"""Functions known to read or decode files: their time is measured separately.

They are replaced in their modules, for the measuring thread, and restored. A program that has
imported such a function under its own name (`from PIL.Image import open as load`) keeps the original.
"""

from __future__ import annotations

import builtins
import contextlib
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

from clew.labs.loaders.dataset_stages import DatasetStage
from clew.labs.loaders.stage_trace import StageFollower

READER, DECODER = "reader", "decoder"  # kinds of stages, beside those of `stages`

# Module, dotted name in it, kind. Only modules that are already imported count.
KNOWN = (
    ("numpy", "load", READER),
    ("numpy", "loadtxt", READER),
    ("numpy", "genfromtxt", READER),
    ("numpy", "fromfile", READER),
    ("torch", "load", READER),
    ("pathlib", "Path.read_bytes", READER),
    ("pathlib", "Path.read_text", READER),
    ("pickle", "load", READER),
    ("json", "load", READER),
    ("pandas", "read_csv", READER),
    ("pandas", "read_parquet", READER),
    ("h5py", "Dataset.__getitem__", READER),
    ("soundfile", "read", READER),
    ("torchaudio", "load", READER),
    ("librosa", "load", READER),
    ("scipy.io.wavfile", "read", READER),
    ("wave", "open", READER),
    ("wave", "Wave_read.readframes", READER),
    ("cv2", "imread", READER),
    ("imageio", "imread", READER),
    ("imageio.v2", "imread", READER),
    ("imageio.v3", "imread", READER),
    ("skimage.io", "imread", READER),
    ("torchvision.io", "read_file", READER),
    ("torchvision.io", "read_image", READER),
    ("torchvision.io", "decode_image", DECODER),
    ("torchvision.io", "decode_jpeg", DECODER),
    ("torchvision.io", "decode_png", DECODER),
    ("PIL.Image", "open", READER),
    ("PIL.ImageFile", "ImageFile.load", DECODER),
    ("cv2", "imdecode", DECODER),
)
OPENED = ("read", "readinto", "readline", "readlines")  # of an open file


@contextlib.contextmanager
def reading_followed(follower: StageFollower) -> Iterator[None]:
    """Report calls of known readers to the follower, as nested stages."""
    thread = threading.get_ident()
    placed: list[tuple[Any, str, Any]] = []
    try:
        for module, path, kind in KNOWN:
            found = _found(module, path)
            if found is not None:
                owner, name, original = found
                stage = DatasetStage(_title(module, path), kind, original)
                _put(placed, owner, name, original, _followed(stage, original, follower, thread))
        opening = _opening(builtins.open, follower, thread)
        _put(placed, builtins, "open", builtins.open, opening)
        yield
    finally:
        for owner, name, original in reversed(placed):
            setattr(owner, name, original)


def _found(module: str, path: str) -> tuple[Any, str, Any] | None:
    owner: Any = sys.modules.get(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part, None)
    original = vars(owner).get(name) if owner is not None and hasattr(owner, "__dict__") else None
    return (owner, name, original) if callable(original) and not isinstance(original, type) else None


def _put(placed: list[tuple[Any, str, Any]], owner: Any, name: str, original: Any, other: Any) -> None:
    try:
        setattr(owner, name, other)
    except (AttributeError, TypeError):  # a class that is not Python's own can't be changed
        return
    placed.append((owner, name, original))


def _title(module: str, path: str) -> str:
    if path == "ImageFile.load":
        return "PIL decoding"
    return f"{module}.{path}".replace(".__getitem__", "[…]")


def _followed(stage: DatasetStage, original: Any, follower: StageFollower, thread: int) -> Callable[..., Any]:
    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != thread or not follower.open or _within(follower, stage):
            return original(*args, **kwargs)
        return follower.call(stage, original, *args, **kwargs)

    return call


def _within(follower: StageFollower, stage: DatasetStage) -> bool:
    """A reader that calls itself, as an already loaded image does, is one call."""
    return follower.open[-1].stage is stage


def _opening(original: Any, follower: StageFollower, thread: int) -> Callable[..., Any]:
    stage = DatasetStage("reading files", READER, original)
    opened = _followed(stage, original, follower, thread)

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        file = opened(*args, **kwargs)
        if threading.get_ident() == thread and follower.open:
            _follow_file(file, stage, follower, thread)
        return file

    return call


def _follow_file(file: Any, stage: DatasetStage, follower: StageFollower, thread: int) -> None:
    """Later reads from it count as reading too. A weak reference: a file is closed when it is released."""
    held = weakref.ref(file)
    for name in OPENED:
        method = getattr(type(file), name, None)
        if method is not None:
            with contextlib.suppress(AttributeError, TypeError):
                setattr(file, name, _followed(stage, partial(_read, held, method), follower, thread))


def _read(held: Callable[[], Any], method: Any, *args: Any, **kwargs: Any) -> Any:
    return method(held(), *args, **kwargs)
